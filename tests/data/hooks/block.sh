#!/bin/sh
# A no by exit code; the second time, an agent that was sent back may stop.
set -eu
input=$(cat)
printf "%s\n" "$input" >>"$CASTOR_PROJECT_DIR/fired"
case $input in *'"stop_hook_active":true'*) exit 0 ;; esac
echo "blocked by test" >&2
exit 2
