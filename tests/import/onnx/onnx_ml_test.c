/* onnx_ml_test.c: ai.onnx.ml on rows of numbers, and n-grams; values as ONNX Runtime gives them. */
#include <math.h>

#include "onnx_node_world.h"

#define ML "ai.onnx.ml"

static const float rows[] = {1, 2, -3, 0.5f, 0, 0};

static struct one on_rows(const char *op, int64_t opset, size_t outputs)
{
    struct one o = one_node(ML, op, opset, outputs);

    o.symbolic = 0;
    one_in_f32(&o, RLX_LIST(3, 2), rows);
    return o;
}

TEST(onnx_ml, features_are_scaled_and_filled_in)
{
    static const float holes[] = {1, NAN, NAN, 2};
    struct one o = on_rows("Scaler", 1, 1);

    ONE_FLOATS(&o, "offset", 1, 2);
    ONE_FLOATS(&o, "scale", 2, 3);
    expect_one(t, &o, 0, 0, 6, (const float[]){0, 0, -8, -4.5f, -2, -6});
    o = one_node(ML, "Imputer", 1, 1);
    one_in_f32(&o, RLX_LIST(2, 2), holes);
    ONE_FLOATS(&o, "imputed_value_floats", 5, 6);
    one_float(&o, "replaced_value_float", NAN);
    expect_one(t, &o, 0, 0, 4, (const float[]){1, 6, 5, 2});
    o = on_rows("Scaler", 1, 1);
    ONE_FLOATS(&o, "offset", 1, 2, 3);
    ONE_FLOATS(&o, "scale", 2);
    expect_one_refused(t, &o, RLX_ERROR_ATTRIBUTE, "offset has 3 entries");
}

TEST(onnx_ml, rows_are_normalised)
{
    static const struct {
        const char *norm;
        float want[6];
    } cases[] = {{"MAX", {0.5f, 1, -6, 1, 0, 0}},
                 {"L1", {1 / 3.0f, 2 / 3.0f, -6 / 7.0f, 1 / 7.0f, 0, 0}},
                 {"L2", {0.44721359f, 0.89442718f, -0.98639393f, 0.16439898f, 0, 0}}};

    for (size_t i = 0; i < 3; i++) {
        struct one o = on_rows("Normalizer", 1, 1);
        one_text(&o, "norm", cases[i].norm);
        expect_one(t, &o, 0, 1e-6, 6, cases[i].want);
    }
    struct one o = on_rows("Normalizer", 1, 1);
    one_text(&o, "norm", "L3");
    expect_one_refused(t, &o, RLX_ERROR_ATTRIBUTE, "norm \"L3\"");
}

TEST(onnx_ml, categories_and_features_side_by_side)
{
    static const int64_t kinds[] = {4, 9, 7};
    struct one o = one_node(ML, "OneHotEncoder", 1, 1);

    one_in(&o, RLX_DTYPE_i64, RLX_LIST(3), kinds);
    ONE_INTS(&o, "cats_int64s", 7, 4);
    expect_one(t, &o, 0, 0, 6, (const float[]){0, 1, 0, 0, 1, 0});
    expect_one_survives(t, &o);
    one_int(&o, "zeros", 0);
    expect_one_refused(t, &o, RLX_ERROR_UNSUPPORTED, "must all be known");
    o = on_rows("FeatureVectorizer", 1, 1);
    one_in(&o, RLX_DTYPE_i64, RLX_LIST(3, 1), kinds);
    expect_one(t, &o, 0, 0, 9, (const float[]){1, 2, 4, -3, 0.5f, 9, 0, 0, 7});
}

/* Which of two equal keys counts changed with version 4. */
TEST(onnx_ml, labels_are_looked_up)
{
    static const int64_t x[] = {1, 5, 7, 1};

    for (int64_t version = 2; version <= 4; version += 2) {
        float one = version == 2 ? 0.5f : 0.75f;
        struct one o = one_node(ML, "LabelEncoder", version, 1);
        one_in(&o, RLX_DTYPE_i64, RLX_LIST(2, 2), x);
        ONE_INTS(&o, "keys_int64s", 1, 5, 1);
        ONE_FLOATS(&o, "values_floats", 0.5f, 0.25f, 0.75f);
        one_float(&o, "default_float", 9);
        expect_one(t, &o, 0, 0, 4, (const float[]){one, 0.25f, 9, one});
    }
    struct one o = one_node(ML, "LabelEncoder", 4, 1);
    one_in(&o, RLX_DTYPE_i64, RLX_LIST(4), x);
    ONE_INTS(&o, "keys_int64s", 1, 5, 1);
    ONE_INTS(&o, "values_int64s", 1);
    expect_one_refused(t, &o, RLX_ERROR_UNSUPPORTED, "not lists of numbers of equal length");
}

TEST(onnx_ml, one_score_tells_two_classes)
{
    struct one o = on_rows("LinearClassifier", 1, 2);

    ONE_FLOATS(&o, "coefficients", 0.5f, -0.25f);
    ONE_FLOATS(&o, "intercepts", 0.1f);
    ONE_INTS(&o, "classlabels_ints", 7, 9);
    expect_one(t, &o, 0, 0, 3, (const float[]){9, 7, 9});
    expect_one(t, &o, 1, 1e-6, 6, (const float[]){0.9f, 0.1f, 2.525f, -1.525f, 0.9f, 0.1f});
    one_text(&o, "post_transform", "LOGISTIC");
    expect_one(
        t, &o, 1, 1e-6, 6,
        (const float[]){0.4750208f, 0.5249792f, 0.8212736f, 0.1787264f, 0.4750208f, 0.5249792f});
}

TEST(onnx_ml, linear_models_are_checked)
{
    struct one o = on_rows("LinearRegressor", 1, 1);

    ONE_FLOATS(&o, "coefficients", 0.5f, -0.25f, 1);
    expect_one_refused(t, &o, RLX_ERROR_SHAPE, "3 coefficients and 0 intercepts for 2 features");
    o = on_rows("LinearRegressor", 1, 1);
    ONE_FLOATS(&o, "coefficients", 0.5f, -0.25f);
    one_text(&o, "post_transform", "LOGISTIC");
    expect_one_refused(t, &o, RLX_ERROR_UNSUPPORTED, "LOGISTIC of a single score");
    o = on_rows("LinearClassifier", 1, 2);
    ONE_FLOATS(&o, "coefficients", 0.5f, -0.25f);
    one_words(&o, "classlabels_strings", "yes no");
    expect_one_refused(t, &o, RLX_ERROR_SHAPE, "1 scores of 0 classes with labels of numbers");
}

/* ---- n-grams ---- */

static struct one ngrams(const char *mode, int64_t first_of_two, int64_t column)
{
    static const int64_t x[] = {2, 3, 2, 3, 5, 2};
    struct one o = one_node("", "TfIdfVectorizer", 9, 1);

    o.symbolic = 0;
    one_in(&o, RLX_DTYPE_i64, RLX_LIST(1, 6), x);
    one_text(&o, "mode", mode);
    one_int(&o, "min_gram_length", 1);
    one_int(&o, "max_gram_length", 2);
    one_int(&o, "max_skip_count", 1);
    ONE_INTS(&o, "ngram_counts", 0, first_of_two);
    ONE_INTS(&o, "pool_int64s", 2, 9, 2, 3, 3, 5); /* 2; 9; 2 3; 3 5 */
    ONE_INTS(&o, "ngram_indexes", 3, 0, 1, column);
    ONE_FLOATS(&o, "weights", 1, 2, 3, 4);
    return o;
}

TEST(onnx_ml, ngrams_are_counted_and_weighed)
{
    struct one o = ngrams("TF", 2, 5);

    expect_one(t, &o, 0, 0, 6, (const float[]){0, 2, 0, 3, 0, 1});
    o = ngrams("TFIDF", 2, 5);
    expect_one(t, &o, 0, 0, 6, (const float[]){0, 6, 0, 3, 0, 4});
    o = ngrams("IDF", 2, 5);
    expect_one(t, &o, 0, 0, 6, (const float[]){0, 3, 0, 1, 0, 4});
}

TEST(onnx_ml, ngrams_that_do_not_fit_are_named)
{
    struct one o = ngrams("TF", 7, 5);

    expect_one_refused(t, &o, RLX_ERROR_ATTRIBUTE, "ngram_counts: entry 1 is 7 of 6");
    o = ngrams("TF", 3, 5);
    expect_one_refused(t, &o, RLX_ERROR_ATTRIBUTE, "3 entries of 2-grams");
    o = ngrams("TF", 2, 0);
    expect_one_refused(t, &o, RLX_ERROR_UNSUPPORTED, "two n-grams for column 0");
    o = ngrams("TF", 2, INT64_MAX);
    expect_one_refused(t, &o, RLX_ERROR_ATTRIBUTE, "ngram_indexes has 4 entries up to");
    o = ngrams("BM25", 2, 5);
    expect_one_refused(t, &o, RLX_ERROR_ATTRIBUTE, "mode \"BM25\"");
}

TEST(onnx_ml, mel_bands_are_bounded)
{
    static const int64_t bands = 1 << 20, length = 1 << 20, rate = 16000;
    static const float low = 0, high = 8000;
    struct one o = one_node("", "MelWeightMatrix", 17, 1);

    one_known(&o, RLX_DTYPE_i64, RLX_EMPTY, &bands);
    one_known(&o, RLX_DTYPE_i64, RLX_EMPTY, &length);
    one_known(&o, RLX_DTYPE_i64, RLX_EMPTY, &rate);
    one_known(&o, RLX_DTYPE_f32, RLX_EMPTY, &low);
    one_known(&o, RLX_DTYPE_f32, RLX_EMPTY, &high);
    expect_one_refused(t, &o, RLX_ERROR_FORMAT, "bands from 0 to 8000 Hz");
}
