#!/bin/sh
# Something more for the model.
set -eu
input=$(cat)
printf "%s\n" "$input" >>"$CASTOR_PROJECT_DIR/fired"
echo '{"hookSpecificOutput": {"additionalContext": "context by test"}}'
