/* train.c: `rlx train`: a model learns from arrays, or a language model from text. */
#include "train.h"

static struct train_options opt = {.device = "auto"};
static struct {
    struct texts data;
    const char *data_file, *params;
} from;
static struct text_options text;

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"--data", FLAG_LIST, &from.data, "NAME=FILE",
         "examples for an input, along the first axis (npy, npz); once per input"},
        {"--data-file", FLAG_TEXT, &from.data_file, "FILE",
         "examples for all inputs, by name: npz, safetensors"},
        {"--params", FLAG_TEXT, &from.params, "FILE",
         "what params begin with, by name: npz, safetensors, GGUF (random)"},
        {"--loss", FLAG_TEXT, &opt.loss, "NAME", "the output that is the loss (the only one)"},
        {"--batch", FLAG_NUMBER, &opt.batch, "N",
         "examples in a batch (as the model says, else 32)"},
        {"--epochs", FLAG_NUMBER, &opt.epochs, "N", "how often each example is seen (1)"},
        {"--steps", FLAG_NUMBER, &opt.steps, "N", "instead: how many updates"},
        {"--optimiser", FLAG_TEXT, &opt.optimiser, "NAME", "adamw, adam, sgd, lion, muon (adamw)"},
        {"--rate", FLAG_TEXT, &opt.rate, "X", "of updates (1e-3; sgd 1e-2, lion 1e-4, muon 2e-2)"},
        {"--schedule", FLAG_TEXT, &opt.schedule, "NAME",
         "how the rate changes: constant, linear, cosine, one-cycle (constant)"},
        {"--warmup", FLAG_NUMBER, &opt.warmup, "N", "steps over which the rate grows first (0)"},
        {"--final-ratio", FLAG_TEXT, &opt.final_ratio, "X",
         "of the rate, what is left of it at the end of a schedule (0)"},
        {"--decay", FLAG_TEXT, &opt.decay, "X", "of weights (0)"},
        {"--momentum", FLAG_TEXT, &opt.momentum, "X", "of sgd and muon (0; muon 0.95)"},
        {"--clip", FLAG_TEXT, &opt.clip, "X",
         "all gradients together are no longer than this (any length)"},
        {"--accumulate", FLAG_NUMBER, &opt.accumulate, "N", "batches to an update (1)"},
        {"--loss-scale", FLAG_TEXT, &opt.loss_scale, "X",
         "for gradients in f16: the loss is multiplied by this (1)"},
        {"--train", FLAG_LIST, &opt.train, "NAME",
         "a param to train, * stands for any characters; once for each (all)"},
        {"--keep", FLAG_LIST, &opt.keep, "NAME", "a param to leave as it is; likewise"},
        {"--device", FLAG_TEXT, &opt.device, "D", "where to train (auto); rlx devices lists them"},
        {"--precision", FLAG_TEXT, &opt.precision, "P",
         "compute=bf16: products alone are computed in halves (as declared)"},
        {"--seed", FLAG_NUMBER, &opt.seed, "N",
         "of random params, the order of examples and what is held out (0)"},
        {"--validate", FLAG_TEXT, &opt.validate, "X",
         "the part of the examples held out for the validation loss (0)"},
        {"--checkpoint", FLAG_TEXT, &opt.checkpoint, "FILE",
         "all that is needed to go on, written now and then"},
        {"--every", FLAG_NUMBER, &opt.every, "N",
         "steps between checkpoints, and looks at what is held out (a tenth of all)"},
        {"--resume", FLAG_SWITCH, &opt.resume, NULL, "go on from the checkpoint, if there is one"},
        {"--save", FLAG_TEXT, &opt.save, "FILE",
         "the params in the end: safetensors, or npz by its name; of --text, GGUF"},
        {"--plot", FLAG_TEXT, &opt.plot, "FILE", "draw the loss as an SVG"},
        {"--log", FLAG_NUMBER, &opt.log, "N",
         "steps between lines of progress (a twentieth of all)"},
        {"--text", FLAG_LIST, &text.file, "FILE",
         "learn a language model from text instead; once per file"},
        {"--layers", FLAG_NUMBER, &text.layers, "N", "of that model (6)"},
        {"--width", FLAG_NUMBER, &text.width, "N", "likewise, of a token's vector (192)"},
        {"--heads", FLAG_NUMBER, &text.heads, "N", "likewise, of queries (6)"},
        {"--kv-heads", FLAG_NUMBER, &text.kv_heads, "N",
         "likewise, of keys and values (half of the heads)"},
        {"--ffn", FLAG_NUMBER, &text.ffn, "N",
         "likewise, inside the feed-forward part (8/3 width)"},
        {"--vocab", FLAG_NUMBER, &text.vocab, "N", "tokens in its vocabulary (2048)"},
        {"--context", FLAG_NUMBER, &text.context, "N", "tokens that it sees at a time (256)"},
        {"--untied", FLAG_SWITCH, &text.untied, NULL,
         "its last matrix is not the table of tokens, but one of its own"},
        {"--lora", FLAG_TEXT, &text.lora, "GGUF",
         "leave this model as it is, and train small matrices beside its own"},
        {"--rank", FLAG_NUMBER, &text.rank, "N", "of those matrices (8)"},
        {"--alpha", FLAG_TEXT, &text.alpha, "X", "what they add is multiplied by X / N (N)"},
        {"--quantize", FLAG_TEXT, &text.quantize, "TYPE",
         "of its matrices in the file: F32, F16, Q8_0, .. (F32)"},
        {"--json", FLAG_SWITCH, &opt.json, NULL, "a summary as one JSON object"},
        {0}};
    return list;
}

static int run(struct cli *c, int argc, char **argv)
{
    struct texts args;
    int code;

    if (!cli_parse(c, flags(), argc, argv, &args, &code))
        return code;
    if (text.file.count && (args.count || from.data.count || from.data_file || from.params))
        return cli_misuse(c, "--text makes a model of its own, and takes no other and no arrays");
    if (text.lora && !text.file.count)
        return cli_misuse(c, "--lora goes with --text FILE");
    if (text.file.count)
        return train_text(c, &opt, &text);
    if (args.count != 1)
        return cli_misuse(c, "takes one model, or --text FILE");
    return train_arrays(c, &opt, args.at[0], &from.data, from.data_file, from.params);
}

const struct command cmd_train = {
    .name = "train",
    .summary = "Train a model on arrays, or a language model on text",
    .usage = "rlx train FILE --data NAME=FILE ... | rlx train --text FILE [--save FILE]",
    .details =
        "FILE is a model with an output that is one number, the loss. Params that no file gives "
        "begin\n"
        "with random numbers. --text learns a vocabulary (byte-level BPE) and a model of the "
        "llama\n"
        "kind, and writes both as GGUF. Ctrl-C stops after the step and writes the checkpoint; a\n"
        "second one ends the command at once. Progress goes to standard error. Exits with 1 where "
        "it\n"
        "failed or was stopped.",
    .examples =
        "rlx train model.rlx --data x=x.npy --data y=y.npy --epochs 10 --save out.safetensors\n"
        "rlx train model.rlx --data-file all.npz --batch 32 --rate 3e-4 --schedule cosine \\\n"
        "    --validate 0.1 --plot loss.svg\n"
        "rlx train model.rlx --data-file all.npz --steps 20000 --checkpoint a.safetensors "
        "--resume\n"
        "rlx train --text book.txt --steps 2000 --save book.gguf --quantize Q8_0\n"
        "rlx train --text poems.txt --lora book.gguf --steps 200 --save poems-lora.gguf",
    .run = run,
    .flags = flags,
};
