// Whether a list stays at its end while something is added, or stands where the user scrolled to.

/** What an element says of its own scrolling. */
export interface Scrolled {
  scrollTop: number;
  scrollHeight: number;
  clientHeight: number;
}

/** Nearer to the end than this is at the end. */
const NEAR_END = 80;

export class Follow {
  private follows = true;
  /** Where the list stood when it was looked at last. */
  private top = 0;

  /** The list was scrolled. Only the user goes up: what is added, and a picture that gets its height late, do not. */
  scrolled(it: Scrolled): void {
    const isAtEnd = it.scrollHeight - it.scrollTop - it.clientHeight < NEAR_END;
    if (isAtEnd) {
      this.follows = true;
    } else if (it.scrollTop < this.top) {
      this.follows = false;
    }
    this.top = it.scrollTop;
  }

  /** What the user sends is at the end, wherever they were. */
  goToEnd(): void {
    this.follows = true;
  }

  /** Where the list is to stand now that its size changed; `undefined`: where it is. */
  placeAfterChange(it: Scrolled): number | undefined {
    if (!this.follows) {
      return undefined;
    }
    this.top = Math.max(0, it.scrollHeight - it.clientHeight);
    return this.top;
  }

  /** The list was moved without the user, to the same place in what is longer at its beginning. */
  moved(top: number): void {
    this.top = top;
  }
}
