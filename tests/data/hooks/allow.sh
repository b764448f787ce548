#!/bin/sh
# Nothing against it, and says so.
set -eu
input=$(cat)
printf "%s\n" "$input" >>"$CASTOR_PROJECT_DIR/fired"
echo '{"decision": "allow", "systemMessage": "allow"}'
