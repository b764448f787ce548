"""Plays a scenario through castor: headless, or over ACP by the driver of `examples/`."""
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "examples"))
from driver import Castor  # noqa: E402

TIMEOUT = 60


class Seen:
    """What a scenario came to."""

    def __init__(self, ground):
        self.ground = ground
        self.text, self.said, self.calls = "", "", []
        self.codes, self.objects, self.questions = [], [], []

    def begin(self, id, name, args):
        self.calls.append({"id": id, "name": name, "args": args, "ok": None, "output": ""})

    def end(self, id, ok, output):
        for it in self.calls:
            if it["id"] == id and it["ok"] is None:
                it["ok"], it["output"] = ok, output

    def called(self, name):
        return [it for it in self.calls if it["name"] == name]

    def hook(self, name):
        file = self.ground.folder / f"hook-{name}.txt"
        return [json.loads(it) for it in file.read_text().splitlines()] if file.exists() else []

    def file(self, name):
        file = self.ground.folder / name
        return file.read_text() if file.exists() else None


class Ground:
    """A home and a folder of one scenario, set up as Gemini CLI's tests set theirs up."""

    def __init__(self, binary, root, scenario, responses):
        self.binary, self.scenario = binary, scenario
        self.folder, self.home = root / "ws", root / "home"
        self.responses = root / "responses"
        if responses is not None:
            self.responses.write_bytes(responses)
        settings = {"security": {"folderTrust": {"enabled": False}}, **scenario.settings}
        hooks = {}
        for it in scenario.hooks:
            line = ["python3", str(HERE / "hook.py"), str(self.folder / f"hook-{it.name}.txt"), it.answer, *it.code]
            entry = {"type": "command", "name": it.name, "command": shlex.join(line), "timeout": 5000}
            group = {"hooks": [entry], **({"matcher": it.matcher} if it.matcher else {})}
            hooks.setdefault(it.event, []).append(group)
        if hooks:
            settings["hooks"] = hooks
        if scenario.has_server:
            settings["mcpServers"] = {"weather-server": {"command": "python3", "args": [str(HERE / "server.py")]}}
        for place in (self.folder, self.home):
            (place / ".gemini").mkdir(parents=True)
            (place / ".gemini/settings.json").write_text(json.dumps(settings))
        for name, text in {**scenario.files, **scenario.home}.items():
            file = (self.home if name in scenario.home else self.folder) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    def env(self):
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), "CASTOR_TRUST_WORKSPACE": "true"}

    def flags(self):
        flags = [f"--approval-mode={self.scenario.mode}"]
        if self.responses.exists():
            flags += ["--fake-responses" + ("" if self.scenario.strict else "-non-strict"), str(self.responses)]
        if self.scenario.policy:
            file = self.home / "policy.toml"
            file.write_text(self.scenario.policy)
            flags += ["--policy", str(file)]
        return flags


def headless(ground):
    seen = Seen(ground)
    for words in ground.scenario.lines or [["-p", it] for it in ground.scenario.prompts]:
        # As their tests do: no command, the flags first.
        line = [ground.binary, *ground.flags(), "-o", ground.scenario.format, *words]
        run = subprocess.run(line, cwd=ground.folder, env=ground.env(), stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, timeout=TIMEOUT)
        seen.codes.append(run.returncode)
        seen.said += run.stdout + run.stderr
        match ground.scenario.format:
            case "text":
                seen.text += run.stdout
            case "json":
                seen.objects.append(json.loads(run.stdout))
                seen.text += seen.objects[-1]["response"]
            case _:
                read_stream(seen, run.stdout)
    return seen


def read_stream(seen, out):
    for event in map(json.loads, out.splitlines()):
        assert event["timestamp"].endswith("Z"), event
        match event:
            case {"type": "message", "role": "assistant", "content": content}:
                seen.text += content
            case {"type": "tool_use", "tool_id": id, "tool_name": name, "parameters": args}:
                seen.begin(id, name, args)
            case {"type": "tool_result", "tool_id": id, "status": status}:
                seen.end(id, status == "success", event.get("output", ""))
    assert event["type"] == "result", event


class Client(Castor):
    """The driver, in the scenario's home and folder."""

    def __init__(self, ground, seen):
        self.log = open(ground.home / "stderr.txt", "w+")
        self.process = subprocess.Popen([ground.binary, "acp", *ground.flags()], cwd=ground.folder, env=ground.env(),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.seen, self.choice = seen, ground.scenario.choice
        self.on_event, self.on_question = self.take, self.answer
        self.last_id, self.answers = 0, {}

    def take(self, event):
        seen = self.seen
        match event:
            case {"type": "message", "role": role, "content": content}:
                text = "".join(it.get("text", "") for it in content)
                seen.said += text + "\n"
                if role == "agent":
                    seen.text += text
            case {"type": "tool_request", "requestId": id, "name": name, "args": args}:
                seen.begin(id, name, args)
            case {"type": "tool_response", "requestId": id, **rest}:
                output = "".join(it.get("text", "") for it in rest.get("content", []))
                seen.end(id, "error" not in rest, output)
                seen.said += json.dumps(rest) + "\n"
            case {"type": "error", "message": message}:
                seen.said += message + "\n"
            case {"type": "custom", "data": data}:
                seen.said += json.dumps(data) + "\n"

    def answer(self, question):
        self.seen.questions.append(question)
        # A person takes their time, and castor does not wait for these hooks.
        for it in self.seen.ground.scenario.hooks:
            end = time.monotonic() + 10
            while it.event == "Notification" and not self.seen.hook(it.name) and time.monotonic() < end:
                time.sleep(0.05)
        chosen = [it["optionId"] for it in question["options"] if it["kind"] == self.choice]
        return {"outcome": "selected", "optionId": chosen[0]} if chosen else {"outcome": "cancelled"}


def over_acp(ground):
    seen = Seen(ground)
    client = Client(ground, seen)
    try:
        session = client.open(str(ground.folder), interactive=ground.scenario.is_asked)
        for prompt in ground.scenario.prompts:
            try:
                client.ask(session, {"type": "text", "text": prompt})
                seen.codes.append(0)
            except RuntimeError as error:
                # The session lives on: the next prompt may do better.
                seen.said += f"{error}\n"
                seen.codes.append(1)
        client.close()
    finally:
        client.process.kill()
        client.log.seek(0)
        seen.said += client.log.read()
        client.log.close()
    return seen
