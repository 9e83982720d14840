# Completion of the rlx command for bash.
# Made by tools/gen-docs from `rlx help --man`: edit the tables in cli/.
_rlx() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} flags=
    if [[ $COMP_CWORD == 1 || (${COMP_WORDS[1]} == help && $COMP_CWORD == 2) ]]; then
        COMPREPLY=($(compgen -W "info print opt plan compile run bench selftest check conform devices ops flags kernel convert quantize tokenize template train generate chat perplexity embed help --version" -- "$cur"))
        return
    fi
    case ${COMP_WORDS[1]} in
    info) flags="--dispatch --fusion --schedule --bindings --memory --budget --device --dim --json --items --absent --fix --external-data --set --threads --help" ;;
    print) flags="--types --full --after --device --svg --dot --html --profile --dim --diff --items --absent --fix --external-data --set --threads --help" ;;
    opt) flags="--pass --device --precision --types --list --items --absent --fix --external-data --set --threads --help" ;;
    plan) flags="--capacity --svg --json --quiet --device --dim --no-reuse --items --absent --fix --external-data --set --threads --help" ;;
    compile) flags="-o --device --bind --weights --weights-beside --param --params --random --items --absent --fix --external-data --set --threads --help" ;;
    run) flags="--input --inputs --param --params --random --seed --dim --device --precision --f16-weights --layout --resize --scale --mean --std --output --json --top --labels --expect --tolerance --limit --profile --trace --check-nans --fail-nans --stats --fused --flat --items --absent --fix --external-data --set --threads --help" ;;
    bench) flags="--op --device --dim --precision --f16-weights --repeat --ms --profile --trace --json --items --absent --fix --external-data --set --threads --help" ;;
    selftest) flags="--device --op --seed --onnx --verbose --items --absent --fix --external-data --set --threads --help" ;;
    check) flags="--devices --input --param --params --dim --seed --exact --verbose --json --items --absent --fix --external-data --set --threads --help" ;;
    conform) flags="--device --match --rewrite --verbose --json --items --absent --fix --external-data --set --threads --help" ;;
    devices) flags="--json --items --absent --fix --external-data --set --threads --help" ;;
    ops) flags="--json --missing --category --items --absent --fix --external-data --set --threads --help" ;;
    flags) flags="--json --items --absent --fix --external-data --set --threads --help" ;;
    kernel) flags="--emit --kernel -D --plain --out --run --device --input --output --word --grid --items --absent --fix --external-data --set --threads --help" ;;
    convert) flags="--type --external --items --absent --fix --external-data --set --threads --help" ;;
    quantize) flags="--keep --items --absent --fix --external-data --set --threads --help" ;;
    tokenize) flags="--ids --count --no-special --no-parse --file --decode --items --absent --fix --external-data --set --threads --help" ;;
    template) flags="--json --spans --ids --source --name --now --items --absent --fix --external-data --set --threads --help" ;;
    train) flags="--data --data-file --params --loss --batch --epochs --steps --optimiser --rate --schedule --warmup --final-ratio --decay --momentum --clip --accumulate --loss-scale --train --keep --device --precision --seed --validate --checkpoint --every --resume --save --plot --log --text --layers --width --heads --kv-heads --ffn --vocab --context --untied --lora --rank --alpha --quantize --json --items --absent --fix --external-data --set --threads --help" ;;
    generate) flags="--prompt -p --file --tokens -n --temp --top-k --top-p --min-p --typical --repeat-penalty --frequency-penalty --presence-penalty --penalty-last --mirostat --seed --stop --grammar --json-schema --ignore-eos --device --context --chunk --cache --exact --guess --lora --no-special --no-echo --json --quiet --list --items --absent --fix --external-data --set --threads --help" ;;
    chat) flags="--prompt -p --system --template --think --no-think --tokens -n --temp --top-k --top-p --min-p --typical --repeat-penalty --frequency-penalty --presence-penalty --penalty-last --mirostat --seed --stop --grammar --json-schema --ignore-eos --device --context --chunk --cache --exact --guess --lora --quiet --items --absent --fix --external-data --set --threads --help" ;;
    perplexity) flags="--file --context --chunks --chunk --device --cache --exact --lora --json --items --absent --fix --external-data --set --threads --help" ;;
    embed) flags="--file --output --similarity --json --pooling --raw --device --context --exact --lora --items --absent --fix --external-data --set --threads --help" ;;
    esac
    if [[ $prev == --device || $prev == --devices ]]; then
        COMPREPLY=($(compgen -W "auto cpu vulkan webgpu null" -- "$cur"))
    elif [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "$flags" -- "$cur"))
    else
        # NAME=FILE is completed after the sign, which bash takes for the end of a word.
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -f -- "${cur#=}"))
    fi
}
complete -F _rlx rlx
