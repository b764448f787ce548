#!/bin/sh
# Means to say something, and nobody knows what.
set -eu
input=$(cat)
printf "%s\n" "$input" >>"$CASTOR_PROJECT_DIR/fired"
printf '{\001\377 not json'
