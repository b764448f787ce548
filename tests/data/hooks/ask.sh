#!/bin/sh
# The user is to decide.
set -eu
input=$(cat)
printf "%s\n" "$input" >>"$CASTOR_PROJECT_DIR/fired"
echo '{"decision": "ask", "reason": "asked by test"}'
