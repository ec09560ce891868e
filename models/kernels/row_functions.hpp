#pragma once

#include <cstdint>

namespace tpudist {

// Functions of float32 numbers whose bits are the same on every CPU: sums, products and divisions
// in a fixed order, none contracted, and no function of a library. Each takes n numbers; the result
// may lie where an operand does. NaN gives NaN. The relative errors stand in
// tests/models/row_functions_test.cpp.

void exp_values(const float* x, std::int64_t n, float* y);
void log1p_values(const float* x, std::int64_t n, float* y);  // of x >= 0
void sigmoid_values(const float* x, std::int64_t n, float* y);

// Activations, and d_x = d_y * the derivative at x.
void gelu_values(const float* x, std::int64_t n, float* y);  // x * the normal distribution's CDF
void gelu_gradient(const float* x, const float* d_y, std::int64_t n, float* d_x);
void gelu_tanh_values(const float* x, std::int64_t n, float* y);  // its approximation by tanh
void gelu_tanh_gradient(const float* x, const float* d_y, std::int64_t n, float* d_x);
void silu_values(const float* x, std::int64_t n, float* y);  // x * sigmoid(x)
void silu_gradient(const float* x, const float* d_y, std::int64_t n, float* d_x);
void elu_values(const float* x, std::int64_t n, float* y);  // x > 0 ? x : exp(x) - 1
void elu_gradient(const float* x, const float* d_y, std::int64_t n, float* d_x);

}  // namespace tpudist
