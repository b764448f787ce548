#!/bin/sh
# Changes what its event lets it change; `$1` is the event.
set -eu
input=$(cat)
printf "%s\n" "$input" >>"$CASTOR_PROJECT_DIR/fired"
say() { printf '{"hookSpecificOutput": %s}\n' "$1"; }
other='{"candidates": [{"content": {"parts": ["said by test"]}}]}'
case $1 in
AfterAgent) say '{"clearContext": true}' ;;
BeforeModel) say '{"llm_request": {"messages": [{"role": "user", "content": "asked by test"}]}}' ;;
AfterModel) say "{\"llm_response\": $other}" ;;
BeforeToolSelection) say '{"toolConfig": {"mode": "ANY", "allowedFunctionNames": ["write_file"]}}' ;;
BeforeTool) say '{"tool_input": {"content": "written by test"}}' ;;
AfterTool) case $input in
    *'"original_request_name"'*) ;;
    *) say '{"tailToolCallRequest": {"name": "read_file", "args": {"file_path": "a.txt"}}}' ;;
    esac ;;
OnUserMessage) say '{"prompt": "asked by test"}' ;;
BeforeRun) say '{"response": "said by test"}' ;;
*) say '{"tool_input": {"content": "written by test"}}' ;;
esac
