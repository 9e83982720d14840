# Completion of the rlx command for bash.
# Made by tools/gen-docs from `rlx help --man`: edit the tables in cli/.
_rlx() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} flags=
    if [[ $COMP_CWORD == 1 || (${COMP_WORDS[1]} == help && $COMP_CWORD == 2) ]]; then
        COMPREPLY=($(compgen -W "info print opt plan compile run bench selftest check devices ops flags kernel convert quantize help --version" -- "$cur"))
        return
    fi
    case ${COMP_WORDS[1]} in
    info) flags="--dispatch --fusion --schedule --bindings --memory --budget --device --dim --external-data --json --threads --help" ;;
    print) flags="--types --full --after --device --svg --dot --diff --threads --help" ;;
    opt) flags="--pass --device --precision --types --list --threads --help" ;;
    plan) flags="--capacity --svg --json --quiet --device --dim --no-reuse --threads --help" ;;
    compile) flags="-o --device --bind --weights --weights-beside --param --params --random --threads --help" ;;
    run) flags="--input --param --params --output --device --dim --precision --random --seed --profile --trace --check-nans --fail-nans --stats --fused --limit --flat --threads --help" ;;
    bench) flags="--op --device --dim --precision --repeat --ms --profile --trace --json --threads --help" ;;
    selftest) flags="--device --op --seed --verbose --threads --help" ;;
    check) flags="--devices --input --param --params --dim --seed --exact --verbose --json --threads --help" ;;
    devices) flags="--json --threads --help" ;;
    ops) flags="--json --missing --category --threads --help" ;;
    flags) flags="--json --threads --help" ;;
    kernel) flags="--emit --kernel -D --plain --out --threads --help" ;;
    convert) flags="--type --external-data --threads --help" ;;
    quantize) flags="--keep --external-data --threads --help" ;;
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
