/* train.h: what the files of `rlx train` share. */
#ifndef CLI_TRAIN_H
#define CLI_TRAIN_H

#include "cli.h"
#include "rlx/llm.h"
#include "rlx/text.h"
#include "rlx/trainer.h"
#include "rlx/weights.h"

/* What the command line says, whichever model is trained. */
struct train_options {
    const char *device, *precision, *optimiser, *schedule;
    const char *rate, *decay, *momentum, *clip, *final_ratio, *loss_scale, *validate;
    const char *checkpoint, *save, *plot, *loss;
    struct texts train, keep;
    int64_t batch, epochs, steps, warmup, accumulate, every, log, seed;
    bool resume, json;
};

/* The loss over time, and the points of a picture of it. */
struct curve_point {
    int64_t step;
    double loss;
};
struct curve {
    struct curve_point *at;
    size_t count, room;
};

/* One training: made, run, saved. */
struct training {
    struct cli *c;
    const struct train_options *opt;
    const char *what;  /* the model, in messages and checkpoints */
    const char *units; /* what is counted per second: "examples" or "tokens" */
    rlx_device *device;
    rlx_trainer *trainer;
    rlx_dataset *data;
    rlx_dataset_info info;
    rlx_train_desc desc;
    rlx_session_desc session;
    uint64_t seed;             /* of the batches */
    char note[256];            /* what must be the same in a checkpoint for batches to be */
    int64_t total, every, log; /* in steps: updates */
    int64_t start;             /* step that it begins with; */
    int64_t step;              /* that it is at */
    struct curve loss, held;   /* of what is trained on, and of what is held out */
    double seconds, rate;      /* spent on steps; units per second */
    bool stopped;              /* by the user */
    bool saved;                /* the checkpoint is that of this step */
};

/* train_setup.c. EXIT_DONE, or what to return. */
/* What the options say of optimiser and session; total 0: not known yet. */
int training_options(struct training *t);
/* The trainer, from a model; and from the checkpoint, if it is to go on. */
int training_open(struct training *t, rlx_model *m, const rlx_init_rule *init, size_t init_count);
/* The data, which desc describes but for batch, seed and what is held out; then how many steps. */
int training_data(struct training *t, rlx_model *m, rlx_dataset_desc *desc);
void training_close(struct training *t);
bool train_real(const char *text, double *out); /* a finite number of at least 0 */

/* train_loop.c: all steps, with progress, checkpoints and what was held out. */
int training_run(struct training *t);
void training_json(const struct training *t, FILE *out);

/* train_arrays.c: a model on arrays in files; train_text.c: a language model on text. */
int train_arrays(struct cli *c, const struct train_options *opt, const char *path,
                 struct texts *data, const char *data_file, const char *params_file);

/* What the model is to be that learns from text; 0: as usual. */
struct text_options {
    struct texts file;
    const char *quantize, *lora, *alpha;
    int64_t rank;
    int64_t layers, width, heads, kv_heads, ffn, vocab, context;
    bool untied;
};
int train_text(struct cli *c, struct train_options *opt, const struct text_options *text);

/* train_gguf.c: the model as other programs read it; or, of a shape with lora_rank, what was
 * trained beside one. */
int save_gguf(struct training *t, const rlx_llm_shape *shape, const rlx_tokenizer *tokenizer,
              rlx_weight_type type, const char *path);

/* curve.c */
bool curve_add(struct curve *k, int64_t step, double loss); /* false: no memory */
void curve_free(struct curve *k);
/* Both curves as an SVG; the second may be empty. */
void curve_draw(const struct curve *loss, const struct curve *held, const char *title,
                struct buffer *out);

#endif
