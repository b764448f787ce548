// Saved sessions by day, newest first.

export interface SavedSession {
  sessionId: string;
  title: string;
  updatedAt?: string;
}

export interface Day {
  label: string;
  sessions: SavedSession[];
}

const DAY = 24 * 60 * 60 * 1000;

function midnight(time: Date): number {
  return new Date(time.getFullYear(), time.getMonth(), time.getDate()).getTime();
}

/** The heading under which a time stands. */
export function dayLabel(time: Date, now: Date): string {
  // Rounded: a day of a clock change has 23 or 25 hours.
  const ago = Math.round((midnight(now) - midnight(time)) / DAY);
  if (ago <= 0) {
    return "Today";
  }
  if (ago === 1) {
    return "Yesterday";
  }
  if (ago < 7) {
    return "This week";
  }
  const month = String(time.getMonth() + 1).padStart(2, "0");
  return `${time.getFullYear()}-${month}`;
}

/** Groups sessions in the order in which they come. */
export function byDay(sessions: SavedSession[], now: Date): Day[] {
  const days = new Map<string, SavedSession[]>();
  for (const session of sessions) {
    const time = session.updatedAt ? new Date(session.updatedAt) : undefined;
    const label = time && !Number.isNaN(time.getTime()) ? dayLabel(time, now) : "Without a date";
    days.set(label, [...(days.get(label) ?? []), session]);
  }
  return [...days].map(([label, group]) => ({ label, sessions: group }));
}
