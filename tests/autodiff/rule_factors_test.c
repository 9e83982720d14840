/* rule_factors_test.c: the parts of matrices, against central differences. */
#include "central.h"

TEST(grad, singular_values_and_vectors)
{
    static const char *const part[] = {"s", "u", "vt"}, *const shape[] = {"4,3", "2,5", "3,3",
                                                                          "1,4"};
    char text[128];

    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 4; k++) {
            snprintf(text, sizeof text, "(input %%a: f64[%s]) { %%y = svd %%a part=%s return %%y }",
                     shape[k], part[i]);
            test_note(t, "%s", text);
            agrees(t, 1e-5, text);
        }
}

TEST(grad, orthogonal_and_triangular_parts)
{
    static const char *const part[] = {"q", "r"}, *const shape[] = {"4,3", "2,5", "3,3", "4,1",
                                                                    "1,3"};
    char text[128];

    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 5; k++) {
            snprintf(text, sizeof text, "(input %%a: f64[%s]) { %%y = qr %%a part=%s return %%y }",
                     shape[k], part[i]);
            test_note(t, "%s", text);
            agrees(t, 1e-5, text);
        }
}

/* Vectors come with either sign; the op settles it, and so differences do not jump. */
TEST(grad, eigenvalues_and_vectors)
{
    agrees(t, 1e-5, "(input %a: f64[4,4]) { %y = eigh %a return %y }");
    agrees(t, 1e-5, "(input %a: f64[1,1]) { %y = eigh %a return %y }");
    agrees(t, 1e-5, "(input %a: f64[3,2,2]) { %y = eigh_batch %a return %y }");
    agrees(t, 1e-5,
           "(input %a: f64[4,4]) { %e = eigh %a %l = narrow %e axis=0 start=0 len=4 return %l }");
}

/* Between equal values no direction is determined: their gradient is finite. */
TEST(grad, equal_values_give_finite_gradients)
{
    agrees(t, 1e-5,
           "(input %s: f64[]) { %one = const f64[2,2] {1 0 0 1} %a = mul %one, %s %y = eigh %a"
           " %l = narrow %y axis=0 start=0 len=2 return %l }");
}
