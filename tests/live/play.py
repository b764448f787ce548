"""castor with a live model server in each dialect: text, a call and its result, errors, and a conversation that outgrows the
model. play.py CASTOR NAME URL KEY MODEL WORDS [overflow]"""
import json
import os
import subprocess
import sys
import tempfile

castor, name, url, key, model, words, *more = sys.argv[1:]
DIALECTS = {"chat": ("openai", url + "/v1"), "responses": ("responses", url + "/v1"), "anthropic": ("anthropic", url)}


class Castor:
    """castor in an empty home and folder, with one provider."""

    def __init__(self, kind, base):
        root = tempfile.mkdtemp()
        self.ws = os.path.join(root, "ws")
        os.makedirs(self.ws)
        os.makedirs(os.path.join(root, ".castor"))
        open(os.path.join(self.ws, "found.txt"), "w").close()
        provider = {"type": kind, "baseUrl": base, "apiKeyEnv": "LIVE_KEY"}
        settings = {"general": {"maxAttempts": 1}, "providers": {"live": provider}, "tools": {"core": ["list_directory"]}}
        with open(os.path.join(root, ".castor", "settings.json"), "w") as file:
            json.dump(settings, file)
        self.env = {"PATH": os.environ["PATH"], "HOME": root, "LANG": "C.UTF-8", "CASTOR_TRUST_WORKSPACE": "true", "LIVE_KEY": key}

    def run(self, prompt, *flags, model=model, **env):
        """Exit code, events, stderr."""
        command = [castor, "run", "-m", "live/" + model, "-o", "events", "--no-stdin", "--max-turns", "4", "--approval-mode", "yolo", *flags, prompt]
        done = subprocess.run(command, env={**self.env, **env}, cwd=self.ws, capture_output=True, text=True, timeout=90)
        events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        return done.returncode, events, done.stderr


def text(events):
    said = [part for it in events if it.get("type") == "message" and it.get("role") == "agent" for part in it["content"]]
    return "".join(part.get("text") or "" for part in said if part["type"] == "text")


def expect(is_so, what, *seen):
    if not is_so:
        sys.exit("\n".join(["%s, %s: %s" % (name, dialect, what), *(str(it)[:3000] for it in seen)]))


for dialect, (kind, base) in DIALECTS.items():
    live = Castor(kind, base)
    code, events, err = live.run("hi")
    expect(code == 0 and text(events) == words, "no text", code, events, err)
    counts = [it for it in events if it.get("type") == "usage"]
    expect(counts and counts[0]["input"] > 0 and counts[0]["output"] > 0, "no counts", counts)
    code, events, err = live.run("Please CALL")
    calls = [(it["name"], it["args"]) for it in events if it.get("type") == "tool_request"]
    results = [json.dumps(it.get("content")) for it in events if it.get("type") == "tool_response"]
    expect(calls == [("list_directory", {"dir_path": "."})], "no call", code, events, err)
    expect(len(results) == 1 and "found.txt" in results[0], "no result", results)
    expect(code == 0 and text(events) == words, "no text behind the result", code, events, err)
    code, events, err = live.run("hi", LIVE_KEY="sk-wrong")
    # LiteLLM looks for a wrong key in its database.
    told = "key" in err.lower() or "No connected db" in err
    expect(code != 0 and told, "no word on a wrong key", code, events, err)
    if "overflow" in more:
        code, events, err = live.run("x" * 7000)
        expect(code == 0 and text(events) == words, "a long prompt is not answered", code, events, err)
        code, events, err = live.run("y" * 7000, "--continue")
        told = err + json.dumps(events)
        recovered = code == 0 and text(events) == words
        expect(recovered or "context" in told or "too long" in told, "a full window is not told", code, events, err)
        print("ok: %s over %s: text, call and result, a wrong key, a full window (%s)" % (name, dialect, "compressed" if recovered else "told"))
    else:
        print("ok: %s over %s: text, call and result, a wrong key" % (name, dialect))
