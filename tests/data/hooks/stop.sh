#!/bin/sh
# The agent is to stop.
set -eu
input=$(cat)
printf "%s\n" "$input" >>"$CASTOR_PROJECT_DIR/fired"
echo '{"continue": false, "stopReason": "stopped by test"}'
