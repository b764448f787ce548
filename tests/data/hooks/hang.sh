#!/bin/sh
# Never answers.
set -eu
input=$(cat)
printf "%s\n" "$input" >>"$CASTOR_PROJECT_DIR/fired"
exec sleep 600
