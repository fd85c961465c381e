/* The upward pass over Gaussian networks, written out in C: the yardstick for the compiled pass.
   The algorithm is that of safespn/engine/kernels.py: rows in blocks, leaves fused into products, pairs (exponent, mantissa),
   one log per row. Compiled by the benchmark with -O3 -march=native -ffast-math where it is safe (no missing cells here). */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline double exp_of_negative(double x) {
    double bounded = x > -708.0 ? x : -708.0;
    double shifted = bounded * 1.4426950408889634 + 6755399441055744.0;
    double power = shifted - 6755399441055744.0;
    double r = bounded - power * 6.93147180369123816490e-01 - power * 1.90821492927058770002e-10;
    double p = 2.505210838544172e-08;
    p = p * r + 2.755731922398589e-07;
    p = p * r + 2.7557319223985893e-06;
    p = p * r + 2.48015873015873e-05;
    p = p * r + 1.984126984126984e-04;
    p = p * r + 1.388888888888889e-03;
    p = p * r + 8.333333333333333e-03;
    p = p * r + 4.1666666666666664e-02;
    p = p * r + 1.6666666666666666e-01;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    int64_t bits;
    memcpy(&bits, &shifted, 8);
    bits = (int64_t)((uint64_t)(bits + 1023) << 52);
    double scale;
    memcpy(&scale, &bits, 8);
    return x >= -708.0 ? p * scale : 0.0;
}

void log_likelihood(
    int64_t n_rows, int64_t n_columns, int64_t n_levels, int64_t n_units, int64_t n_sums, int64_t block,
    const int64_t *edge_start, const int64_t *edge_unit, const int64_t *child_start, const int64_t *child,
    const int64_t *sum_level_start, const int64_t *unit_level_start,
    const int64_t *square_start, const int64_t *square_slot, const int64_t *square_feature,
    const double *log_weights, const double *unit_constant, const double *centre, const double *scale,
    const double *table, double *result) {
    double *cells = aligned_alloc(64, sizeof(double) * n_columns * block);
    double *unit_exponent = aligned_alloc(64, sizeof(double) * n_units * block);
    double *unit_mantissa = aligned_alloc(64, sizeof(double) * n_units * block);
    double *sum_exponent = aligned_alloc(64, sizeof(double) * n_sums * block);
    double *sum_mantissa = aligned_alloc(64, sizeof(double) * n_sums * block);
    for (int64_t i = 0; i < n_units * block; i++) unit_mantissa[i] = 1.0;
    for (int64_t begin = 0; begin < n_rows; begin += block) {
        int64_t n = n_rows - begin < block ? n_rows - begin : block;
        for (int64_t c = 0; c < n_columns; c++)
            for (int64_t r = 0; r < n; r++) cells[c * block + r] = table[(begin + r) * n_columns + c];
        for (int64_t level = 0; level < n_levels; level++) {
            for (int64_t u = unit_level_start[level]; u < unit_level_start[level + 1]; u++) {
                double *restrict value = unit_exponent + u * block;
                double *restrict mantissa = unit_mantissa + u * block;
                for (int64_t r = 0; r < n; r++) value[r] = 0.0;
                for (int64_t e = square_start[u]; e < square_start[u + 1]; e++) {
                    int64_t slot = square_slot[e];
                    const double *restrict x = cells + square_feature[slot] * block;
                    double mu = centre[slot], s = scale[slot];
                    for (int64_t r = 0; r < n; r++) {
                        double z = (x[r] - mu) * s;
                        value[r] += z * z;
                    }
                }
                for (int64_t r = 0; r < n; r++) value[r] = unit_constant[u] - 0.5 * value[r];
                if (child_start[u] < child_start[u + 1])
                    for (int64_t r = 0; r < n; r++) mantissa[r] = 1.0;
                for (int64_t e = child_start[u]; e < child_start[u + 1]; e++) {
                    const double *restrict ce = sum_exponent + child[e] * block;
                    const double *restrict cm = sum_mantissa + child[e] * block;
                    for (int64_t r = 0; r < n; r++) {
                        value[r] += ce[r];
                        mantissa[r] *= cm[r];
                    }
                }
            }
            for (int64_t s = sum_level_start[level]; s < sum_level_start[level + 1]; s++) {
                double *restrict exponent = sum_exponent + s * block;
                double *restrict mantissa = sum_mantissa + s * block;
                for (int64_t r = 0; r < n; r++) exponent[r] = -INFINITY;
                for (int64_t e = edge_start[s]; e < edge_start[s + 1]; e++) {
                    const double *restrict value = unit_exponent + edge_unit[e] * block;
                    double w = log_weights[e];
                    for (int64_t r = 0; r < n; r++) exponent[r] = value[r] + w > exponent[r] ? value[r] + w : exponent[r];
                }
                for (int64_t r = 0; r < n; r++) mantissa[r] = 0.0;
                for (int64_t e = edge_start[s]; e < edge_start[s + 1]; e++) {
                    const double *restrict value = unit_exponent + edge_unit[e] * block;
                    const double *restrict factor = unit_mantissa + edge_unit[e] * block;
                    double w = log_weights[e];
                    for (int64_t r = 0; r < n; r++)
                        mantissa[r] += exp_of_negative(value[r] + w - exponent[r]) * factor[r];
                }
            }
        }
        for (int64_t r = 0; r < n; r++)
            result[begin + r] = sum_exponent[(n_sums - 1) * block + r] + log(sum_mantissa[(n_sums - 1) * block + r]);
    }
    free(cells); free(unit_exponent); free(unit_mantissa); free(sum_exponent); free(sum_mantissa);
}
