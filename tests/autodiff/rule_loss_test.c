/* rule_loss_test.c: cross entropies, against central differences. */
#include "central.h"

TEST(grad, cross_entropies)
{
    agrees(t, 1e-6,
           "(input %x: f64[6,4], input %idx6: i32[6])"
           " { %y = softmax_cross_entropy_with_logits %x, %idx6 return %y }");
    agrees(t, 1e-6,
           "(input %x: f64[3,4], input %t: f64[3,4])"
           " { %y = softmax_cross_entropy %x, %t return %y }");
}
