/* cut.h: sizes that only the data tells, and what they do to a graph.
 *
 * A node like ONNX's NonZero has as many results as its input has elements that are not zero. Such
 * a graph is written with a value `padded`, which has room for all there can be, and a number
 * `count`, which says at run time how many of them count. What follows reads `leaf`: an input of
 * the graph, of the same type but for its size along `axis`, which is a symbol. Once `count` is
 * known, so is the symbol, and what counts of `padded` is the value of `leaf`:
 *
 *     %padded = ..                            i64[2,12]
 *     %count = ..                             i64[]
 *     ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~ here the graph is cut in two
 *     input %leaf: i64[2,nonzero_1]           nonzero_1 = count; leaf = padded[:, 0 .. count-1]
 *
 * Several cuts may tell one symbol, if by the same count. Without `padded` there is no leaf either:
 * the cut gives a size to nodes that need nothing else. */
#ifndef IR_CUT_H
#define IR_CUT_H

#include "ir/graph.h"

#define MAX_CUTS 256

struct ir_cut {
    size_t symbol;
    ir_value count;  /* a scalar of i64 or i32 */
    ir_value padded; /* RLX_NO_VALUE: none */
    ir_value leaf;
    int32_t axis;
};

#endif
