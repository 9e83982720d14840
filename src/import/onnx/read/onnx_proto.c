/* onnx_proto.c: which fields of an ONNX file go where. */
#include <stddef.h>

#include "import/onnx/read/onnx_model.h"
#include "import/wire_write.h"

#define ROW(T, number, kind, field)                          \
    {                                                        \
        number, WIRE_##kind, offsetof(struct T, field), NULL \
    }
#define SUB(T, number, kind, field, message)                     \
    {                                                            \
        number, WIRE_##kind, offsetof(struct T, field), &message \
    }
#define MESSAGE(T, rows, text)                                                      \
    static const struct wire_message T##_message = {text, sizeof(struct T), (rows), \
                                                    sizeof(rows) / sizeof(rows)[0]}

static const struct wire_row entry_rows[] = {ROW(onnx_entry, 1, STR, key),
                                             ROW(onnx_entry, 2, STR, value)};
MESSAGE(onnx_entry, entry_rows, "an entry");

static const struct wire_row tensor_rows[] = {
    ROW(onnx_tensor, 1, I64S, dims),
    ROW(onnx_tensor, 2, I64, data_type),
    ROW(onnx_tensor, 4, F32S, float_data),
    ROW(onnx_tensor, 5, I64S, int32_data),
    ROW(onnx_tensor, 6, STRS, string_data),
    ROW(onnx_tensor, 7, I64S, int64_data),
    ROW(onnx_tensor, 8, STR, name),
    ROW(onnx_tensor, 9, SEEN, has_raw),
    ROW(onnx_tensor, 9, STR, raw),
    ROW(onnx_tensor, 10, F64S, double_data),
    ROW(onnx_tensor, 11, I64S, uint64_data),
    SUB(onnx_tensor, 13, MESSAGES, external, onnx_entry_message),
    ROW(onnx_tensor, 14, I64, location),
};
MESSAGE(onnx_tensor, tensor_rows, "a tensor");

static const struct wire_message onnx_list_message; /* lists hold lists */
static const struct wire_row list_rows[] = {
    ROW(onnx_list, 2, I64, elem_type),
    SUB(onnx_list, 3, MESSAGES, tensor, onnx_tensor_message),
    SUB(onnx_list, 5, MESSAGES, sequence, onnx_list_message),
};
MESSAGE(onnx_list, list_rows, "a sequence");

static const struct wire_row sparse_rows[] = {
    SUB(onnx_sparse, 1, MESSAGE, values, onnx_tensor_message),
    SUB(onnx_sparse, 2, MESSAGE, indices, onnx_tensor_message),
    ROW(onnx_sparse, 3, I64S, dims),
};
MESSAGE(onnx_sparse, sparse_rows, "a sparse tensor");

static const struct wire_row dim_rows[] = {
    ROW(onnx_dim, 1, SEEN, has_value),
    ROW(onnx_dim, 1, I64, value),
    ROW(onnx_dim, 2, STR, param),
};
MESSAGE(onnx_dim, dim_rows, "a dim");
static const struct wire_row shape_rows[] = {SUB(onnx_shape, 1, MESSAGES, dim, onnx_dim_message)};
MESSAGE(onnx_shape, shape_rows, "a shape");
static const struct wire_row tensor_type_rows[] = {
    ROW(onnx_tensor_type, 1, I64, elem_type),
    SUB(onnx_tensor_type, 2, MESSAGE, shape, onnx_shape_message),
};
MESSAGE(onnx_tensor_type, tensor_type_rows, "a tensor's type");

static const struct wire_message onnx_type_message; /* types hold types */
static const struct wire_row holder_rows[] = {
    SUB(onnx_holder_type, 1, MESSAGE, elem, onnx_type_message)};
MESSAGE(onnx_holder_type, holder_rows, "a sequence's type");
static const struct wire_row type_rows[] = {
    SUB(onnx_type, 1, MESSAGE, tensor, onnx_tensor_type_message),
    SUB(onnx_type, 4, MESSAGE, sequence, onnx_holder_type_message),
    SUB(onnx_type, 9, MESSAGE, optional, onnx_holder_type_message),
};
MESSAGE(onnx_type, type_rows, "a type");

static const struct wire_row value_rows[] = {
    ROW(onnx_value_info, 1, STR, name),
    SUB(onnx_value_info, 2, MESSAGE, type, onnx_type_message),
};
MESSAGE(onnx_value_info, value_rows, "an input or output");

static const struct wire_message onnx_graph_message; /* attributes hold graphs */
static const struct wire_row attr_rows[] = {
    ROW(onnx_attr, 1, STR, name),
    ROW(onnx_attr, 2, F32, f),
    ROW(onnx_attr, 3, I64, i),
    ROW(onnx_attr, 4, STR, s),
    SUB(onnx_attr, 5, MESSAGE, t, onnx_tensor_message),
    SUB(onnx_attr, 6, MESSAGE, g, onnx_graph_message),
    ROW(onnx_attr, 7, F32S, floats),
    ROW(onnx_attr, 8, I64S, ints),
    ROW(onnx_attr, 9, STRS, strings),
    ROW(onnx_attr, 20, I64, type),
    ROW(onnx_attr, 21, STR, ref),
    SUB(onnx_attr, 22, MESSAGE, sparse, onnx_sparse_message),
};
MESSAGE(onnx_attr, attr_rows, "an attribute");

static const struct wire_row node_rows[] = {
    ROW(onnx_node, 1, STRS, input),
    ROW(onnx_node, 2, STRS, output),
    ROW(onnx_node, 3, STR, name),
    ROW(onnx_node, 4, STR, op),
    SUB(onnx_node, 5, MESSAGES, attr, onnx_attr_message),
    ROW(onnx_node, 7, STR, domain),
};
MESSAGE(onnx_node, node_rows, "a node");

static const struct wire_row graph_rows[] = {
    SUB(onnx_graph, 1, MESSAGES, node, onnx_node_message),
    ROW(onnx_graph, 2, STR, name),
    SUB(onnx_graph, 5, MESSAGES, initializer, onnx_tensor_message),
    SUB(onnx_graph, 11, MESSAGES, input, onnx_value_info_message),
    SUB(onnx_graph, 12, MESSAGES, output, onnx_value_info_message),
    SUB(onnx_graph, 15, MESSAGES, sparse_initializer, onnx_sparse_message),
};
MESSAGE(onnx_graph, graph_rows, "a graph");

static const struct wire_row opset_rows[] = {
    ROW(onnx_opset, 1, STR, domain),
    ROW(onnx_opset, 2, I64, version),
};
MESSAGE(onnx_opset, opset_rows, "an opset");

static const struct wire_row function_rows[] = {
    ROW(onnx_function, 1, STR, name),
    ROW(onnx_function, 4, STRS, input),
    ROW(onnx_function, 5, STRS, output),
    ROW(onnx_function, 6, STRS, attribute),
    SUB(onnx_function, 7, MESSAGES, node, onnx_node_message),
    SUB(onnx_function, 9, MESSAGES, opset, onnx_opset_message),
    ROW(onnx_function, 10, STR, domain),
    SUB(onnx_function, 11, MESSAGES, attr, onnx_attr_message),
};
MESSAGE(onnx_function, function_rows, "a function");

static const struct wire_row model_rows[] = {
    ROW(onnx_model, 1, I64, ir_version),
    ROW(onnx_model, 2, STR, producer),
    ROW(onnx_model, 3, STR, producer_version),
    SUB(onnx_model, 7, MESSAGE, graph, onnx_graph_message),
    SUB(onnx_model, 8, MESSAGES, opset, onnx_opset_message),
    SUB(onnx_model, 25, MESSAGES, function, onnx_function_message),
};
MESSAGE(onnx_model, model_rows, "a model");

rlx_status onnx_read_model(rlx_str bytes, struct onnx_model *out, struct arena *arena,
                           struct diag *d)
{
    struct diag own;

    diag_init(&own, "load");
    rlx_status s = wire_read(&onnx_model_message, bytes, out, arena, &own);
    if (s == RLX_ERROR_FORMAT)
        return diag_fail(d, s,
                         "the file cannot be read as ONNX: %s. It has %zu bytes, and may be "
                         "damaged or cut off",
                         own.first.message, bytes.len);
    if (s != RLX_OK)
        return diag_fail(d, s, "%s", own.first.message);
    if (!out->graph)
        return diag_fail(d, RLX_ERROR_FORMAT, "onnx: the file holds no graph");
    return RLX_OK;
}

rlx_status onnx_read_tensor(rlx_str bytes, struct onnx_tensor *out, struct arena *arena,
                            struct diag *d)
{
    return wire_read(&onnx_tensor_message, bytes, out, arena, d);
}

uint64_t onnx_model_size(const struct onnx_model *m)
{
    return wire_size(&onnx_model_message, m);
}

rlx_status onnx_put_model(const struct onnx_model *m, const struct wire_sink *sink, struct diag *d)
{
    return wire_write(&onnx_model_message, m, sink, d);
}

/* What it holds is of the kind it says; only tensors, where there are any. */
static bool holds_tensors(const struct onnx_list *l)
{
    return l->sequence.count == 0 && (l->elem_type == ONNX_LIST_TENSOR || l->tensor.count == 0);
}

rlx_status onnx_read_list(rlx_str bytes, struct onnx_list *out, bool *absent, struct arena *arena,
                          struct diag *d)
{
    TRY(wire_read(&onnx_list_message, bytes, out, arena, d));
    *absent = out->elem_type == ONNX_LIST_UNDEFINED;
    if (out->elem_type == ONNX_LIST_SEQUENCE) { /* an optional one */
        if (out->sequence.count > 1 || out->tensor.count)
            return diag_fail(d, RLX_ERROR_UNSUPPORTED,
                             "a sequence of something other than tensors");
        *absent = out->sequence.count == 0;
        *out = *absent ? (struct onnx_list){0} : out->sequence.at[0];
    }
    if (out->elem_type != ONNX_LIST_TENSOR && out->elem_type != ONNX_LIST_UNDEFINED)
        return diag_fail(d, RLX_ERROR_UNSUPPORTED, "a sequence of something other than tensors");
    if (!holds_tensors(out))
        return diag_fail(d, RLX_ERROR_FORMAT,
                         "a sequence that holds other elements than it declares");
    return RLX_OK;
}
