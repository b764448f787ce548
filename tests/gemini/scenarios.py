"""The table: what is played of each file of responses, and what has to come of it; or why it is left out."""
import json
from dataclasses import dataclass, field
from typing import Callable

BOTH, HEADLESS, ACP = ("headless", "acp"), ("headless",), ("acp",)


@dataclass
class Hook:
    event: str
    name: str
    answer: str
    matcher: str = ""
    code: list = field(default_factory=list)


@dataclass
class Scenario:
    responses: str
    title: str
    check: Callable
    prompts: list = field(default_factory=lambda: ["Go on."])
    # Words behind the flags, in place of -p and a prompt; a line for each run.
    lines: list = field(default_factory=list)
    ways: tuple = BOTH
    mode: str = "yolo"
    strict: bool = True
    format: str = "stream-json"
    settings: dict = field(default_factory=dict)
    hooks: list = field(default_factory=list)
    files: dict = field(default_factory=dict)
    home: dict = field(default_factory=dict)
    policy: str = ""
    has_server: bool = False
    # Over ACP: whether the client answers questions, and how.
    is_asked: bool = False
    choice: str = "allow_once"


def hook(event, name, matcher="", code=None, text=None, **answer):
    return Hook(event, name, json.dumps(answer) if text is None else text, matcher, code or [])


def told(event, name, matcher="", **specific):
    return hook(event, name, matcher, decision="allow", hookSpecificOutput={"hookEventName": event, **specific})


# What the model is sent, one request a line.
REQUESTS = hook("BeforeModel", "requests", decision="allow")


def sent(seen):
    return [json.dumps(it["llm_request"]) for it in seen.hook("requests")]


def one(seen, name, ok=True):
    calls = seen.called(name)
    assert [it["ok"] for it in calls] == [ok], seen.calls
    return calls[0]


def says(*words):
    def check(seen):
        missing = [it for it in words if it.lower() not in seen.text.lower()]
        assert not missing, f"the answer lacks {missing}: {seen.text}"
    return check


def wrote(name, text):
    def check(seen):
        assert any(it["ok"] for it in seen.called("write_file")), seen.calls
        assert seen.file(name) == text, seen.file(name)
    return check


def said(words):
    def check(seen):
        assert words in seen.said, seen.said
    return check


def each(*checks):
    def check(seen):
        for it in checks:
            it(seen)
    return check


def done(seen):
    assert set(seen.codes) == {0}, seen.codes


def blocked(reason):
    def check(seen):
        one(seen, "write_file", ok=False)
        assert reason in seen.said, "nobody is told why"
        assert seen.file("test.txt") is None
    return check


def heard(name, **members):
    def check(seen):
        all = seen.hook(name)
        assert all, f"the hook {name} did not run"
        for key, value in members.items():
            assert all[0].get(key) == value, all[0]
    return check


def in_first_request(words):
    def check(seen):
        assert words in sent(seen)[0], sent(seen)[0]
    return check


def in_second_request(words):
    def check(seen):
        assert words in json.dumps(seen.said) or words in "".join(sent(seen)[1:]), seen.said
    return check


def after_agent(seen):
    it = seen.hook("after")[0]
    assert it["prompt"] == "Say something." and "Hello World" in it["prompt_response"], it


def cleared(seen):
    sizes = [len(it["llm_request"]["messages"]) for it in seen.hook("requests")]
    assert len(sizes) >= 2 and sizes[1] <= sizes[0], sizes
    assert "start over" in seen.said, "nobody is told why"


def once_each(seen):
    assert [len(seen.hook(it)) for it in ("before", "after")] == [1, 1]
    says("Final Answer")(seen)


def not_answered(words):
    def check(seen):
        assert "no model today" in seen.said and words not in seen.text, seen.text
    return check


def notified(seen):
    it = seen.hook("notify")[0]
    details = it["details"]
    assert it["notification_type"] == "ToolPermission" and it["message"], it
    assert details["type"] == "exec" and details["command"] and details["title"], details
    assert len(seen.questions) == 1 and one(seen, "run_shell_command"), seen.questions


def asked(file):
    def check(seen):
        assert len(seen.questions) == 1, seen.questions
        assert "a hook wants to know" in json.dumps(seen.questions) + seen.said
        assert (seen.file("approved.txt") == "Approved content") == file
    return check


def overridden(seen):
    one(seen, "write_file")
    assert (seen.file("modified.txt"), seen.file("original.txt")) == ("other words", None)
    assert len(seen.hook("change")) == 1


def tail_call(seen):
    says("Tail call completed successfully.")(seen)
    assert seen.file("tail.txt") == "of the tail", seen.calls


def ends_and_begins(seen):
    assert [it["source"] for it in seen.hook("start")] == ["startup", "clear"], seen.hook("start")
    assert seen.hook("end")[0]["reason"] == "clear", seen.hook("end")


def not_run(name, *files):
    def check(seen):
        assert not seen.hook(name) and len(seen.hook("on")) == len(files), seen.hook("on")
        assert all(seen.file(it) is not None for it in files)
    return check


def is_object(*words, failed=0):
    def check(seen):
        done(seen)
        if not seen.objects:
            return says(*words)(seen)
        it = seen.objects[0]
        assert it["session_id"] and "error" not in it, it
        says(*words)(seen)
        tools = it["stats"]["tools"]
        assert (tools["totalCalls"], tools["totalFail"], tools["totalSuccess"]) == (failed, failed, 0), tools
        assert all(it["api"]["totalRequests"] for it in it["stats"]["models"].values()), it["stats"]
    return check


def waves(seen):
    says("All waves completed successfully.")(seen)
    assert [it["ok"] for it in seen.called("read_file")] == [True] * 4, seen.calls
    wrote("output.txt", "wave2")(seen)
    assert len(seen.questions) == 1, seen.questions


def background(seen):
    done(seen)
    one(seen, "run_shell_command")
    assert "sleep 10" in one(seen, "list_background_processes")["output"], seen.calls
    assert len(seen.called("read_background_output")) == 1, seen.calls
    says("hello-from-background")(seen)


def compressed(seen):
    done(seen)
    says("THE_END")(seen)
    assert '"status": "completed"' in seen.said, seen.said[-2000:]


def resources(seen):
    assert "test://resource1" in one(seen, "list_mcp_resources")["output"], seen.calls
    assert "content of resource 1" in one(seen, "read_mcp_resource")["output"], seen.calls


def plain_stdout(*words):
    def check(seen):
        done(seen)
        says(*words)(seen)
        assert not any(it.startswith(("[", "castor:")) for it in seen.text.splitlines()), seen.text
    return check


def nothing_to_compress(seen):
    done(seen)
    assert "nothing to compress" in seen.said.lower(), seen.said


SHELL = '[[rule]]\ntoolName = "run_shell_command"\n'
ECHO = SHELL + 'commandPrefix = "echo"\n'
WRITES = dict(prompts=["Write the file."])
REASON = "no files today"

PLAYED = [
    Scenario("api-resilience", "a chunk without content", says("Part 1.", "Part 2.")),
    Scenario("context-compress-interactive.compress", "/compress", compressed, ["A story.", "/compress"], ways=ACP),
    Scenario("context-compress-interactive.compress-empty", "/compress of nothing", nothing_to_compress, ["/compress"]),
    Scenario("hooks-agent-flow", "BeforeAgent adds to the prompt", in_first_request("said before"),
             hooks=[told("BeforeAgent", "before", additionalContext="said before"), REQUESTS]),
    Scenario("hooks-agent-flow", "AfterAgent knows prompt and answer", after_agent, ["Say something."],
             hooks=[hook("AfterAgent", "after", text="heard")]),
    Scenario("hooks-system.after-agent", "AfterAgent clears the context and asks again", cleared, hooks=[
        hook("AfterAgent", "after", first={"decision": "block", "reason": "start over", "hookSpecificOutput": {
            "hookEventName": "AfterAgent", "clearContext": True}}, then={"decision": "allow"}), REQUESTS]),
    Scenario("hooks-agent-flow-multistep", "agent hooks run once for a prompt", once_each,
             hooks=[hook("BeforeAgent", "before", text="before"), hook("AfterAgent", "after", text="after")]),
    Scenario("hooks-system.block-tool", "BeforeTool blocks", blocked(REASON),
             hooks=[hook("BeforeTool", "block", "write_file", decision="block", reason=REASON)], **WRITES),
    Scenario("hooks-system.block-tool", "exit 2 with a decision on stderr blocks", blocked(REASON),
             hooks=[hook("BeforeTool", "block", "write_file", code=["2"], decision="deny", reason=REASON)], **WRITES),
    Scenario("hooks-system.allow-tool", "BeforeTool allows", wrote("approved.txt", "Approved content"),
             hooks=[hook("BeforeTool", "allow", "write_file", decision="allow", reason="fine")], **WRITES),
    Scenario("hooks-system.allow-tool", "words before the JSON make it a message",
             each(wrote("approved.txt", "Approved content"), said("mixed up")),
             hooks=[hook("BeforeTool", "mixed", "write_file", text='mixed up\n{"decision":"deny","reason":"r"}')]),
    Scenario("hooks-system.allow-tool", "BeforeTool asks even in yolo", asked(True), ways=ACP, is_asked=True,
             hooks=[hook("BeforeTool", "ask", "write_file", decision="ask", systemMessage="a hook wants to know")]),
    Scenario("hooks-system.allow-tool", "the answer to that can be no", asked(False), ways=ACP, is_asked=True,
             choice="reject_once",
             hooks=[hook("BeforeTool", "ask", "write_file", decision="ask", systemMessage="a hook wants to know")]),
    Scenario("hooks-system.after-tool-context", "AfterTool adds to a result",
             lambda it: one(it, "read_file") and in_second_request("it looks safe")(it),
             files={"test-file.txt": "words"},
             hooks=[told("AfterTool", "after", "read_file", additionalContext="it looks safe"), REQUESTS]),
    Scenario("hooks-system.tail-tool-call", "AfterTool calls another tool", tail_call, files={"original.txt": "x"},
             hooks=[told("AfterTool", "tail", "read_file", tailToolCallRequest={
                 "name": "write_file", "args": {"file_path": "tail.txt", "content": "of the tail"}})]),
    Scenario("hooks-system.before-model", "BeforeModel changes the request", says("security hook modified"),
             hooks=[told("BeforeModel", "model", llm_request={"messages": [{"role": "user", "content": "other words"}]})]),
    Scenario("hooks-system.before-model", "BeforeModel denies", not_answered("security hook"),
             hooks=[hook("BeforeModel", "model", decision="deny", reason="no model today")]),
    Scenario("hooks-system.before-model", "BeforeModel blocks", not_answered("security hook"),
             hooks=[hook("BeforeModel", "model", decision="block", reason="no model today")]),
    Scenario("hooks-system.after-model", "AfterModel changes the answer", says("[filtered]"),
             hooks=[told("AfterModel", "model", llm_response={"candidates": [
                 {"content": {"role": "model", "parts": ["[filtered]"]}, "finishReason": "STOP"}]})]),
    Scenario("hooks-system.before-tool-selection", "BeforeToolSelection chooses tools",
             lambda it: one(it, "read_file") and heard("choose")(it), files={"new_file_data.txt": "words"},
             hooks=[told("BeforeToolSelection", "choose", toolConfig={"mode": "ANY", "allowedFunctionNames": ["read_file"]})]),
    Scenario("hooks-system.before-agent", "BeforeAgent adds to the prompt of a longer answer",
             each(says("security"), in_first_request("mention it")),
             hooks=[told("BeforeAgent", "before", additionalContext="mention it"), REQUESTS]),
    Scenario("hooks-system.notification", "Notification before a question", notified, ways=ACP, mode="default",
             is_asked=True, settings={"tools": {"confirmationRequired": ["run_shell_command"]}},
             hooks=[hook("Notification", "notify", "ToolPermission", systemMessage="noted")]),
    Scenario("hooks-system.sequential-execution", "hooks one after the other",
             each(heard("one"), heard("two"), in_first_request("step two")),
             hooks=[told("BeforeAgent", "one", additionalContext="step one"),
                    told("BeforeAgent", "two", additionalContext="step two"), REQUESTS]),
    Scenario("hooks-system.input-validation", "what a hook is told",
             each(wrote("input-test.txt", "test"), lambda it: [it.hook("all")[0][key] for key in (
                 "session_id", "cwd", "hook_event_name", "timestamp", "tool_name", "tool_input")]),
             hooks=[hook("BeforeTool", "all", decision="allow")], **WRITES),
    Scenario("hooks-system.multiple-events", "hooks of three events",
             each(wrote("multi-event-test.txt", "testing multiple events"), heard("agent"), heard("tool"), heard("after"),
                  said("noted")),
             hooks=[told("BeforeAgent", "agent", additionalContext="seen"),
                    hook("BeforeTool", "tool", "write_file", decision="allow", systemMessage="noted"),
                    told("AfterTool", "after", "write_file", additionalContext="done")]),
    Scenario("hooks-system.error-handling", "one hook fails, the call goes on",
             wrote("error-test.txt", "testing error handling"),
             hooks=[hook("BeforeTool", "fails", text="", code=["1"]), hook("BeforeTool", "works", decision="allow")]),
    Scenario("hooks-system.telemetry", "a hook around a call", each(wrote("telemetry-test.txt", ""), heard("seen")),
             hooks=[hook("BeforeTool", "seen", decision="allow")]),
    Scenario("hooks-system.session-startup", "SessionStart", each(says("Hello"), heard("start", source="startup")),
             hooks=[hook("SessionStart", "start", "startup", decision="allow", systemMessage="begun")]),
    Scenario("hooks-system.session-startup", "SessionStart adds to the first prompt",
             each(in_first_request("speak in verse"), said("begun")),
             hooks=[hook("SessionStart", "start", "startup", decision="allow", systemMessage="begun", hookSpecificOutput={
                 "hookEventName": "SessionStart", "additionalContext": "speak in verse"}), REQUESTS]),
    Scenario("hooks-system.session-startup", "SessionEnd", heard("end", reason="exit"),
             hooks=[hook("SessionEnd", "end", "exit", decision="allow", systemMessage="over")]),
    Scenario("hooks-system.session-clear", "/clear ends a session and begins one", ends_and_begins,
             ["Hello.", "/clear", "Hello."], ways=ACP, hooks=[hook("SessionStart", "start", decision="allow"),
                                                              hook("SessionEnd", "end", decision="allow")]),
    Scenario("hooks-system.compress-auto", "PreCompress", heard("compress", trigger="auto"), ["Hello.", "And now?"],
             ways=ACP, settings={"model": {"compressionThreshold": 0.000001}},
             hooks=[hook("PreCompress", "compress", "auto", decision="allow", systemMessage="smaller")]),
    Scenario("hooks-system.disabled-via-settings", "a hook that is switched off", not_run("off", "disabled-test.txt"),
             settings={"hooksConfig": {"disabled": ["off"]}},
             hooks=[hook("BeforeTool", "on", decision="allow"), hook("BeforeTool", "off", decision="block", reason="r")]),
    Scenario("hooks-system.disabled-via-command", "it stays off", not_run("off", "first-run.txt", "second-run.txt"),
             ["First.", "Second."], ways=ACP, settings={"hooksConfig": {"disabled": ["off"]}},
             hooks=[hook("BeforeTool", "on", decision="allow"), hook("BeforeTool", "off", decision="block", reason="r")]),
    Scenario("hooks-system.input-modification", "BeforeTool changes arguments", overridden, hooks=[
        told("BeforeTool", "change", "write_file", tool_input={"file_path": "modified.txt", "content": "other words"})]),
    Scenario("hooks-system.before-tool-stop", "BeforeTool stops the agent", each(done, blocked("stop here")), hooks=[
        hook("BeforeTool", "stop", "write_file", **{"continue": False}, reason="stop here")]),
    Scenario("json-output.france", "an object with answer and numbers", is_object("paris"), format="json",
             lines=[["What is the capital?"]]),
    Scenario("json-output.session-id", "an object with the session", is_object("Hello"), format="json",
             lines=[["Hello"]]),
    Scenario("json-output.error", "a failed call is no failed run", is_object("not found", failed=1), format="json",
             lines=[["Read it."]]),
    Scenario("mcp-list-resources", "resources are listed",
             each(says("test://resource1"), lambda it: one(it, "list_mcp_resources")), has_server=True),
    Scenario("mcp-read-resource", "a resource is read",
             each(says("content of resource 1"), lambda it: one(it, "read_mcp_resource")), has_server=True),
    Scenario("mcp-resources", "listed, then read", each(done, resources),
             ["List.", "Read."], ways=ACP, has_server=True),
    Scenario("test-mcp-support", "a tool of a server", each(done, says("rainy"), lambda it: (
        one(it, "mcp_weather-server_get_weather"))), has_server=True),
    # There, too, the list of tools denies what is not in it, and their test looks only at the call.
    Scenario("test-mcp-support", "the model knows the tool where castor's own are left out", each(says("rainy"), lambda it: (
        it.called("mcp_weather-server_get_weather")[0])), has_server=True, settings={"tools": {"core": []}}),
    Scenario("parallel-tools", "reads, a question, a write, reads", waves, ways=ACP, mode="default", strict=False,
             is_asked=True, files={f"file{n}.txt": f"c{n}" for n in range(1, 5)},
             settings={"tools": {"core": ["read_file", "write_file"], "confirmationRequired": ["write_file"]}}),
    Scenario("policy-headless-shell-allowed", "a rule allows the shell", each(done, says("POLICY_TEST_ECHO_COMMAND"),
             lambda it: one(it, "run_shell_command")), mode="default", policy=SHELL + 'decision = "allow"\npriority = 100\n'),
    Scenario("policy-headless-shell-allowed", "a rule allows one command", each(done, says("POLICY_TEST_ECHO_COMMAND"),
             lambda it: one(it, "run_shell_command")), mode="default", policy=ECHO + 'decision = "allow"\npriority = 100\n'),
    Scenario("policy-headless-shell-denied", "a rule denies it", each(says("AR NAR"), lambda it: one(
        it, "run_shell_command", ok=False)), mode="default", policy=ECHO + 'decision = "deny"\npriority = 100\n'),
    Scenario("policy-headless-shell-denied", "differs: a command that only reads runs without a rule",
             each(done, lambda it: one(it, "run_shell_command")), mode="default"),
    Scenario("policy-headless-readonly", "tools that only read", each(done, says("Latin"), lambda it: one(it, "read_file")),
             mode="default", files={"test.txt": "Lorem\nIpsum\n"}),
    Scenario("resume_repro", "the last session goes on", each(done, says("Session started.Session started.")),
             ways=HEADLESS, lines=[["hello"], ["--resume", "latest", "continue"]]),
    Scenario("shell-background", "a command in the background, its list and its output", background,
             ["Start it.", "Read it."], ways=ACP),
    Scenario("stdout-stderr-output", "the answer alone on stdout", plain_stdout("hello"), format="text", ways=HEADLESS),
    Scenario("stdout-stderr-output-error", "a file that is not there", plain_stdout("could not find"), format="text",
             lines=[["-p", "@nonexistent-file-that-does-not-exist.txt what is it?"]], ways=HEADLESS),
    Scenario("user-policy", "rules in ~/.gemini/policies", each(done, says("I ran ls -F"), lambda it: one(
        it, "run_shell_command")), mode="default",
             home={".gemini/policies/a.toml": SHELL + 'commandPrefix = "ls -F"\ndecision = "allow"\npriority = 100\n'}),
    Scenario("user-policy", "differs: a command that only reads runs without a rule", each(done, lambda it: one(
        it, "run_shell_command")), mode="default"),
]


LEFT_OUT = {
    "browser-": "their agent that drives Chrome",
    "flicker-detector": "counts how their terminal flickers",
    "concurrency-limit": "eleven pages of example.com, by a web_fetch that takes a prompt; castor's takes an address",
    "context-compress-interactive.compress-failure": "skipped there, too: a test that is known to be wrong",
}
