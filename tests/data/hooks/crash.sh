#!/bin/sh
# Ends by a signal.
set -eu
input=$(cat)
printf "%s\n" "$input" >>"$CASTOR_PROJECT_DIR/fired"
kill -SEGV $$
