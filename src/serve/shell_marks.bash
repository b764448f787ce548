# bash of castor's terminals: the user's own settings, then marks around commands (OSC 633) by which clients tell them apart.
[ -r ~/.bashrc ] && . ~/.bashrc
__castor_escape() {
    local text=${1//\\/\\\\}
    text=${text//;/\\x3b}
    text=${text//$'\n'/\\x0a}
    builtin printf '%s' "$text"
}
__castor_executed() {
    local line
    line=$(HISTTIMEFORMAT='' builtin history 1)
    line=${line#"${line%%[![:space:]]*}"}
    line=${line#*[[:space:]]}
    line=${line#"${line%%[![:space:]]*}"}
    builtin printf '\033]633;E;%s\007\033]633;C\007' "$(__castor_escape "$line")"
}
__castor_prompt() {
    local status=$?
    builtin printf '\033]633;D;%s\007\033]633;P;Cwd=%s\007\033]633;A\007' "$status" "$(__castor_escape "$PWD")"
    return "$status"
}
set -o history
PROMPT_COMMAND="__castor_prompt${PROMPT_COMMAND:+;$PROMPT_COMMAND}"
PS0='$(__castor_executed)'
