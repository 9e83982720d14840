# Completion of the rlx command for bash.
# Made by tools/gen-docs from `rlx help --man`: edit the tables in cli/.
_rlx() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} flags=
    if [[ $COMP_CWORD == 1 || (${COMP_WORDS[1]} == help && $COMP_CWORD == 2) ]]; then
        COMPREPLY=($(compgen -W "info print opt plan run bench selftest devices ops help --version" -- "$cur"))
        return
    fi
    case ${COMP_WORDS[1]} in
    info) flags="--json --threads --help" ;;
    print) flags="--types --full --svg --dot --threads --help" ;;
    opt) flags="--pass --device --types --list --threads --help" ;;
    plan) flags="--capacity --svg --json --quiet --device --dim --no-reuse --threads --help" ;;
    run) flags="--input --param --output --device --dim --random --seed --profile --threads --help" ;;
    bench) flags="--op --device --dim --repeat --ms --json --threads --help" ;;
    selftest) flags="--device --op --seed --verbose --threads --help" ;;
    devices) flags="--json --threads --help" ;;
    ops) flags="--json --missing --category --threads --help" ;;
    esac
    if [[ $prev == --device ]]; then
        COMPREPLY=($(compgen -W "auto cpu null" -- "$cur"))
    elif [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "$flags" -- "$cur"))
    else
        # NAME=FILE is completed behind the sign, which bash takes for the end of a word.
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -f -- "${cur#=}"))
    fi
}
complete -F _rlx rlx
