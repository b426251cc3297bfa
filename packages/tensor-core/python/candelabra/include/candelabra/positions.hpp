// Generated from the operator catalogue by packages/tensor-core/tools/make_headers.py.
// Positions of arguments in the schema: candelabra::positions::topk::k is 1.
#ifndef CANDELABRA_POSITIONS_HPP
#define CANDELABRA_POSITIONS_HPP

namespace candelabra::positions {

namespace allocate {
enum Position : int { size, dtype, device, memory_format };
}
namespace empty {
enum Position : int { size, dtype, device, memory_format, layout, requires_grad, pin_memory };
}
namespace zeros {
enum Position : int { size, dtype, device, layout, requires_grad, pin_memory };
}
namespace ones {
enum Position : int { size, dtype, device, layout, requires_grad, pin_memory };
}
namespace full {
enum Position : int { size, fill_value, dtype, device, layout, requires_grad, pin_memory };
}
namespace empty_like {
enum Position : int { self, dtype, device, memory_format, layout, requires_grad, pin_memory };
}
namespace zeros_like {
enum Position : int { self, dtype, device, memory_format, layout, requires_grad, pin_memory };
}
namespace ones_like {
enum Position : int { self, dtype, device, memory_format, layout, requires_grad, pin_memory };
}
namespace full_like {
enum Position : int { self, fill_value, dtype, device, memory_format, layout, requires_grad, pin_memory };
}
namespace empty_strided {
enum Position : int { size, stride, dtype, device };
}
namespace fill {
enum Position : int { self, value };
}
namespace arange {
enum Position : int { start, end, step, dtype, device };
}
namespace linspace {
enum Position : int { start, end, steps, dtype, device };
}
namespace tril_triu_indices {
enum Position : int { rows, columns, offset, upper, dtype, device };
}
namespace copy {
enum Position : int { self, src, non_blocking };
}
namespace clone {
enum Position : int { self, memory_format };
}
namespace to {
enum Position : int { self, target, second, dtype, device };
}
namespace to_copy {
enum Position : int { self, dtype, device, non_blocking, memory_format };
}
namespace contiguous {
enum Position : int { self, memory_format };
}
namespace neg {
enum Position : int { self };
}
namespace sign {
enum Position : int { self };
}
namespace sgn {
enum Position : int { self };
}
namespace floor {
enum Position : int { self };
}
namespace ceil {
enum Position : int { self };
}
namespace trunc {
enum Position : int { self };
}
namespace frac {
enum Position : int { self };
}
namespace square {
enum Position : int { self };
}
namespace conj_physical {
enum Position : int { self };
}
namespace relu {
enum Position : int { self };
}
namespace round {
enum Position : int { self, decimals };
}
namespace bitwise_not {
enum Position : int { self };
}
namespace nan_to_num {
enum Position : int { self, nan, posinf, neginf };
}
namespace exp {
enum Position : int { self };
}
namespace exp2 {
enum Position : int { self };
}
namespace expm1 {
enum Position : int { self };
}
namespace log {
enum Position : int { self };
}
namespace log2 {
enum Position : int { self };
}
namespace log10 {
enum Position : int { self };
}
namespace log1p {
enum Position : int { self };
}
namespace sqrt {
enum Position : int { self };
}
namespace rsqrt {
enum Position : int { self };
}
namespace reciprocal {
enum Position : int { self };
}
namespace sin {
enum Position : int { self };
}
namespace cos {
enum Position : int { self };
}
namespace tan {
enum Position : int { self };
}
namespace asin {
enum Position : int { self };
}
namespace acos {
enum Position : int { self };
}
namespace atan {
enum Position : int { self };
}
namespace sinh {
enum Position : int { self };
}
namespace cosh {
enum Position : int { self };
}
namespace tanh {
enum Position : int { self };
}
namespace asinh {
enum Position : int { self };
}
namespace acosh {
enum Position : int { self };
}
namespace atanh {
enum Position : int { self };
}
namespace sigmoid {
enum Position : int { self };
}
namespace erf {
enum Position : int { self };
}
namespace erfc {
enum Position : int { self };
}
namespace erfinv {
enum Position : int { self };
}
namespace lgamma {
enum Position : int { self };
}
namespace digamma {
enum Position : int { self };
}
namespace logit {
enum Position : int { self, eps };
}
namespace abs {
enum Position : int { self };
}
namespace angle {
enum Position : int { self };
}
namespace isnan {
enum Position : int { self };
}
namespace isinf {
enum Position : int { self };
}
namespace isfinite {
enum Position : int { self };
}
namespace isposinf {
enum Position : int { self };
}
namespace isneginf {
enum Position : int { self };
}
namespace signbit {
enum Position : int { self };
}
namespace logical_not {
enum Position : int { self };
}
namespace complex {
enum Position : int { real, imag };
}
namespace polar {
enum Position : int { abs, angle };
}
namespace add {
enum Position : int { self, other, alpha };
}
namespace sub {
enum Position : int { self, other, alpha };
}
namespace mul {
enum Position : int { self, other };
}
namespace div {
enum Position : int { self, other, rounding_mode };
}
namespace rsub {
enum Position : int { self, other, alpha };
}
namespace floor_divide {
enum Position : int { self, other };
}
namespace remainder {
enum Position : int { self, other };
}
namespace fmod {
enum Position : int { self, other };
}
namespace pow {
enum Position : int { self, exponent };
}
namespace maximum {
enum Position : int { self, other };
}
namespace minimum {
enum Position : int { self, other };
}
namespace fmax {
enum Position : int { self, other };
}
namespace fmin {
enum Position : int { self, other };
}
namespace atan2 {
enum Position : int { self, other };
}
namespace hypot {
enum Position : int { self, other };
}
namespace copysign {
enum Position : int { self, other };
}
namespace xlogy {
enum Position : int { self, other };
}
namespace logaddexp {
enum Position : int { self, other };
}
namespace logaddexp2 {
enum Position : int { self, other };
}
namespace nextafter {
enum Position : int { self, other };
}
namespace heaviside {
enum Position : int { self, values };
}
namespace bitwise_and {
enum Position : int { self, other };
}
namespace bitwise_or {
enum Position : int { self, other };
}
namespace bitwise_xor {
enum Position : int { self, other };
}
namespace bitwise_left_shift {
enum Position : int { self, other };
}
namespace bitwise_right_shift {
enum Position : int { self, other };
}
namespace eq {
enum Position : int { self, other };
}
namespace ne {
enum Position : int { self, other };
}
namespace lt {
enum Position : int { self, other };
}
namespace le {
enum Position : int { self, other };
}
namespace gt {
enum Position : int { self, other };
}
namespace ge {
enum Position : int { self, other };
}
namespace logical_and {
enum Position : int { self, other };
}
namespace logical_or {
enum Position : int { self, other };
}
namespace logical_xor {
enum Position : int { self, other };
}
namespace where {
enum Position : int { condition, input, other };
}
namespace clamp {
enum Position : int { self, min, max };
}
namespace lerp {
enum Position : int { self, end, weight };
}
namespace addcmul {
enum Position : int { self, tensor1, tensor2, value };
}
namespace addcdiv {
enum Position : int { self, tensor1, tensor2, value };
}
namespace gelu {
enum Position : int { self, approximate };
}
namespace gelu_backward {
enum Position : int { grad, self, approximate };
}
namespace silu {
enum Position : int { self };
}
namespace silu_backward {
enum Position : int { grad, self };
}
namespace mish {
enum Position : int { self };
}
namespace log_sigmoid {
enum Position : int { self };
}
namespace softplus {
enum Position : int { self, beta, threshold };
}
namespace elu {
enum Position : int { self, alpha, scale, input_scale };
}
namespace leaky_relu {
enum Position : int { self, negative_slope };
}
namespace threshold_backward {
enum Position : int { grad, self, threshold };
}
namespace sigmoid_backward {
enum Position : int { grad, output };
}
namespace tanh_backward {
enum Position : int { grad, output };
}
namespace hardtanh {
enum Position : int { self, min_val, max_val };
}
namespace hardswish {
enum Position : int { self };
}
namespace hardsigmoid {
enum Position : int { self };
}
namespace hardshrink {
enum Position : int { self, lambd };
}
namespace softshrink {
enum Position : int { self, lambd };
}
namespace threshold {
enum Position : int { self, threshold, value };
}
namespace prelu {
enum Position : int { self, weight };
}
namespace hardtanh_backward {
enum Position : int { grad, self, min_val, max_val };
}
namespace hardswish_backward {
enum Position : int { grad, self };
}
namespace hardsigmoid_backward {
enum Position : int { grad, self };
}
namespace shrink_backward {
enum Position : int { grad, self, lambd };
}
namespace leaky_relu_backward {
enum Position : int { grad, self, negative_slope };
}
namespace elu_backward {
enum Position : int { grad, self, alpha, scale, input_scale };
}
namespace softplus_backward {
enum Position : int { grad, self, beta, threshold };
}
namespace log_sigmoid_backward {
enum Position : int { grad, self };
}
namespace mish_backward {
enum Position : int { grad, self };
}
namespace sum {
enum Position : int { self, dim, keepdim, dtype };
}
namespace mean {
enum Position : int { self, dim, keepdim, dtype };
}
namespace nansum {
enum Position : int { self, dim, keepdim, dtype };
}
namespace count_nonzero {
enum Position : int { self, dim };
}
namespace prod {
enum Position : int { self, dim, keepdim, dtype };
}
namespace amax {
enum Position : int { self, dim, keepdim };
}
namespace amin {
enum Position : int { self, dim, keepdim };
}
namespace aminmax {
enum Position : int { self, dim, keepdim };
}
namespace max_with_indices {
enum Position : int { self, dim, keepdim };
}
namespace min_with_indices {
enum Position : int { self, dim, keepdim };
}
namespace argmax {
enum Position : int { self, dim, keepdim };
}
namespace argmin {
enum Position : int { self, dim, keepdim };
}
namespace all {
enum Position : int { self, dim, keepdim };
}
namespace any {
enum Position : int { self, dim, keepdim };
}
namespace var {
enum Position : int { self, dim, correction, keepdim };
}
namespace std {
enum Position : int { self, dim, correction, keepdim };
}
namespace linalg_vector_norm {
enum Position : int { self, ord, dim, keepdim, dtype };
}
namespace logsumexp {
enum Position : int { self, dim, keepdim };
}
namespace cumsum {
enum Position : int { self, dim, dtype };
}
namespace cumprod {
enum Position : int { self, dim, dtype };
}
namespace logcumsumexp {
enum Position : int { self, dim };
}
namespace cummax_cummin {
enum Position : int { self, dim, larger };
}
namespace sort {
enum Position : int { self, dim, descending, stable };
}
namespace topk {
enum Position : int { self, k, dim, largest, sorted };
}
namespace searchsorted {
enum Position : int { sorted_sequence, values, right, out_int32, sorter };
}
namespace kthvalue_index {
enum Position : int { self, dim, rank, among };
}
namespace mode_index {
enum Position : int { self, dim };
}
namespace histc {
enum Position : int { self, bins, low, high };
}
namespace view {
enum Position : int { self, size };
}
namespace reshape {
enum Position : int { self, shape };
}
namespace split {
enum Position : int { self, split_size, dim };
}
namespace view_dtype {
enum Position : int { self, dtype };
}
namespace as_strided {
enum Position : int { self, size, stride, storage_offset };
}
namespace expand {
enum Position : int { self, size, implicit };
}
namespace permute {
enum Position : int { self, dims };
}
namespace transpose {
enum Position : int { self, dim0, dim1 };
}
namespace t {
enum Position : int { self };
}
namespace squeeze {
enum Position : int { self, dim };
}
namespace unsqueeze {
enum Position : int { self, dim };
}
namespace select {
enum Position : int { self, dim, index };
}
namespace slice {
enum Position : int { self, dim, start, end, step };
}
namespace narrow {
enum Position : int { self, dim, start, length };
}
namespace diagonal {
enum Position : int { self, offset, dim1, dim2 };
}
namespace unfold {
enum Position : int { self, dimension, size, step };
}
namespace movedim {
enum Position : int { self, source, destination };
}
namespace unflatten {
enum Position : int { self, dim, sizes };
}
namespace alias {
enum Position : int { self };
}
namespace view_as_real {
enum Position : int { self };
}
namespace view_as_complex {
enum Position : int { self };
}
namespace detach {
enum Position : int { self };
}
namespace cat {
enum Position : int { tensors, dim };
}
namespace stack {
enum Position : int { tensors, dim };
}
namespace flip {
enum Position : int { self, dims };
}
namespace tril {
enum Position : int { self, diagonal };
}
namespace triu {
enum Position : int { self, diagonal };
}
namespace pixel_shuffle {
enum Position : int { self, upscale_factor };
}
namespace pixel_unshuffle {
enum Position : int { self, downscale_factor };
}
namespace channel_shuffle {
enum Position : int { self, groups };
}
namespace gather {
enum Position : int { self, dim, index };
}
namespace scatter {
enum Position : int { self, dim, index, src };
}
namespace scatter_add {
enum Position : int { self, dim, index, src };
}
namespace scatter_reduce {
enum Position : int { self, dim, index, src, reduce, include_self };
}
namespace index_select {
enum Position : int { self, dim, index };
}
namespace index_add {
enum Position : int { self, dim, index, source, alpha };
}
namespace index_copy {
enum Position : int { self, dim, index, source };
}
namespace index_fill {
enum Position : int { self, dim, index, value };
}
namespace index {
enum Position : int { self, indices };
}
namespace index_put {
enum Position : int { self, indices, values, accumulate };
}
namespace take {
enum Position : int { self, index };
}
namespace masked_fill {
enum Position : int { self, mask, value };
}
namespace masked_scatter {
enum Position : int { self, mask, source };
}
namespace masked_select {
enum Position : int { self, mask };
}
namespace nonzero {
enum Position : int { self };
}
namespace embedding {
enum Position : int { weight, indices, padding_idx };
}
namespace embedding_backward {
enum Position : int { grad, indices, num_weights, padding_idx };
}
namespace embedding_bag {
enum Position : int { weight, indices, offsets, mode, per_sample_weights, scale_grad_by_freq, include_last_offset, padding_idx };
}
namespace embedding_bag_backward {
enum Position : int { grad, indices, offset2bag, bag_size, max_indices, num_weights, mode, per_sample_weights, scale_grad_by_freq, padding_idx };
}
namespace mm {
enum Position : int { self, mat2 };
}
namespace bmm {
enum Position : int { self, mat2 };
}
namespace mv {
enum Position : int { self, vec };
}
namespace dot {
enum Position : int { self, tensor };
}
namespace addmm {
enum Position : int { self, mat1, mat2, beta, alpha };
}
namespace addmm_activation {
enum Position : int { self, mat1, mat2, beta, alpha, use_gelu };
}
namespace baddbmm {
enum Position : int { self, batch1, batch2, beta, alpha };
}
namespace linear {
enum Position : int { input, weight, bias };
}
namespace cdist_forward {
enum Position : int { x1, x2, p };
}
namespace pdist_forward {
enum Position : int { self, p };
}
namespace cdist_backward {
enum Position : int { grad, x1, x2, result, p };
}
namespace linalg_cholesky_ex {
enum Position : int { self, upper };
}
namespace linalg_lu_factor_ex {
enum Position : int { A, pivot };
}
namespace lu_pivots_to_permutation {
enum Position : int { self, dim, backwards };
}
namespace linalg_ldl_factor_ex {
enum Position : int { self, hermitian };
}
namespace geqrf {
enum Position : int { self };
}
namespace linalg_qr {
enum Position : int { A, mode };
}
namespace linalg_householder_product {
enum Position : int { input, tau };
}
namespace linalg_eigh_ex {
enum Position : int { A, UPLO, compute_v };
}
namespace linalg_eig_ex {
enum Position : int { A, compute_v };
}
namespace linalg_svd_ex {
enum Position : int { A, full_matrices, compute_uv };
}
namespace linalg_solve_ex {
enum Position : int { A, B };
}
namespace linalg_inv_ex {
enum Position : int { A };
}
namespace linalg_solve_triangular {
enum Position : int { self, B, upper, left, unitriangular };
}
namespace linalg_lu_solve {
enum Position : int { LU, pivots, B, adjoint };
}
namespace cholesky_solve {
enum Position : int { self, input2, upper };
}
namespace linalg_ldl_solve {
enum Position : int { LD, pivots, B, hermitian };
}
namespace linalg_lstsq_driver {
enum Position : int { A, B, rcond, driver };
}
namespace linalg_det {
enum Position : int { A };
}
namespace linalg_slogdet {
enum Position : int { A };
}
namespace linalg_pinv_atol_rtol {
enum Position : int { A, atol, rtol, hermitian };
}
namespace fft_c2c {
enum Position : int { self, dim, forward, scale };
}
namespace fft_r2c {
enum Position : int { self, dim, scale };
}
namespace fft_r2c_nd {
enum Position : int { self, dim, scale };
}
namespace fft_c2r {
enum Position : int { self, dim, n, scale };
}
namespace i0 {
enum Position : int { self };
}
namespace special_i0e {
enum Position : int { self };
}
namespace special_i1 {
enum Position : int { self };
}
namespace special_i1e {
enum Position : int { self };
}
namespace special_modified_bessel_k0 {
enum Position : int { self };
}
namespace special_modified_bessel_k1 {
enum Position : int { self };
}
namespace special_scaled_modified_bessel_k0 {
enum Position : int { self };
}
namespace special_scaled_modified_bessel_k1 {
enum Position : int { self };
}
namespace special_bessel_j0 {
enum Position : int { self };
}
namespace special_bessel_j1 {
enum Position : int { self };
}
namespace special_bessel_y0 {
enum Position : int { self };
}
namespace special_bessel_y1 {
enum Position : int { self };
}
namespace special_spherical_bessel_j0 {
enum Position : int { self };
}
namespace special_airy_ai {
enum Position : int { self };
}
namespace special_erfcx {
enum Position : int { self };
}
namespace special_ndtr {
enum Position : int { self };
}
namespace special_log_ndtr {
enum Position : int { self };
}
namespace special_ndtri {
enum Position : int { self };
}
namespace special_entr {
enum Position : int { self };
}
namespace igamma {
enum Position : int { self, other };
}
namespace igammac {
enum Position : int { self, other };
}
namespace special_zeta {
enum Position : int { self, other };
}
namespace special_xlog1py {
enum Position : int { self, other };
}
namespace special_chebyshev_polynomial_t {
enum Position : int { self, n };
}
namespace special_chebyshev_polynomial_u {
enum Position : int { self, n };
}
namespace special_chebyshev_polynomial_v {
enum Position : int { self, n };
}
namespace special_chebyshev_polynomial_w {
enum Position : int { self, n };
}
namespace special_shifted_chebyshev_polynomial_t {
enum Position : int { self, n };
}
namespace special_shifted_chebyshev_polynomial_u {
enum Position : int { self, n };
}
namespace special_shifted_chebyshev_polynomial_v {
enum Position : int { self, n };
}
namespace special_shifted_chebyshev_polynomial_w {
enum Position : int { self, n };
}
namespace special_hermite_polynomial_h {
enum Position : int { self, n };
}
namespace special_hermite_polynomial_he {
enum Position : int { self, n };
}
namespace special_laguerre_polynomial_l {
enum Position : int { self, n };
}
namespace special_legendre_polynomial_p {
enum Position : int { self, n };
}
namespace gcd {
enum Position : int { self, other };
}
namespace lcm {
enum Position : int { self, other };
}
namespace frexp {
enum Position : int { self };
}
namespace softmax {
enum Position : int { self, dim, dtype };
}
namespace softmax_backward {
enum Position : int { grad, output, dim };
}
namespace log_softmax {
enum Position : int { self, dim, dtype };
}
namespace log_softmax_backward {
enum Position : int { grad, output, dim };
}
namespace nll_loss_forward {
enum Position : int { self, target, weight, reduction, ignore_index };
}
namespace nll_loss_backward {
enum Position : int { grad, self, target, weight, reduction, ignore_index, total_weight };
}
namespace cross_entropy_forward {
enum Position : int { input, target, weight, ignore_index, reduction };
}
namespace cross_entropy_backward {
enum Position : int { grad, input, target, weight, ignore_index, reduction, total_weight, statistics };
}
namespace ctc_loss {
enum Position : int { log_probs, targets, input_lengths, target_lengths, blank, zero_infinity };
}
namespace ctc_loss_backward {
enum Position : int { grad, log_probs, targets, input_lengths, target_lengths, loss, log_alpha, blank, zero_infinity };
}
namespace squared_error {
enum Position : int { self, target };
}
namespace squared_error_backward {
enum Position : int { grad, self, target };
}
namespace huber_error {
enum Position : int { self, target, delta, scale };
}
namespace huber_error_backward {
enum Position : int { grad, self, target, delta, scale };
}
namespace logits_cross_entropy {
enum Position : int { self, target };
}
namespace logits_cross_entropy_backward {
enum Position : int { grad, self, target };
}
namespace probability_cross_entropy {
enum Position : int { self, target };
}
namespace probability_cross_entropy_backward {
enum Position : int { grad, self, target };
}
namespace scaled_dot_product_attention {
enum Position : int { query, key, value, mask, is_causal, scale };
}
namespace scaled_dot_product_attention_backward {
enum Position : int { grad, query, key, value, mask, output, logsumexp, is_causal, scale };
}
namespace lstm_sequence {
enum Position : int { gates, h0, c0, weight, reverse };
}
namespace lstm_sequence_backward {
enum Position : int { grad_output, grad_cells, grad_activations, h0, c0, weight, output, cells, activations, reverse };
}
namespace recurrent_sequence {
enum Position : int { gates, h0, c0, weight, bias, batch_sizes, reverse, cell };
}
namespace recurrent_states {
enum Position : int { gates, h0, c0, weight, bias, batch_sizes, reverse, cell };
}
namespace recurrent_sequence_backward {
enum Position : int { grad_output, grad_cells, grad_activations, h0, c0, weight, output, cells, activations, batch_sizes, reverse, cell };
}
namespace recurrent_layer {
enum Position : int { input, input_weight, input_bias, h0, c0, weight, bias, batch_sizes, reverse, cell };
}
namespace recurrent_layer_states {
enum Position : int { input, input_weight, input_bias, h0, c0, weight, bias, batch_sizes, reverse, cell };
}
namespace recurrent_stack {
enum Position : int { input, weights, h0, c0, batch_sizes, layers, bidirectional, has_biases, cell };
}
namespace recurrent_stack_kept {
enum Position : int { input, weights, h0, c0, batch_sizes, layers, bidirectional, has_biases, cell };
}
namespace recurrent_stack_backward {
enum Position : int { grad_output, grad_h, grad_c, input, weights, h0, c0, output, reserve, batch_sizes, layers, bidirectional, has_biases, cell };
}
namespace convolution {
enum Position : int { input, weight, bias, stride, padding, dilation, groups };
}
namespace convolution_backward_input {
enum Position : int { grad, weight, input_size, stride, padding, dilation, groups };
}
namespace convolution_backward_weight {
enum Position : int { grad, input, weight_size, stride, padding, dilation, groups };
}
namespace max_pool {
enum Position : int { self, kernel_size, stride, padding, dilation, ceil_mode };
}
namespace max_pool_values {
enum Position : int { self, kernel_size, stride, padding, dilation, ceil_mode };
}
namespace adaptive_max_pool {
enum Position : int { self, output_size };
}
namespace max_pool_backward {
enum Position : int { grad, indices, input_size };
}
namespace avg_pool {
enum Position : int { self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override };
}
namespace avg_pool_backward {
enum Position : int { grad, input_size, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override };
}
namespace adaptive_avg_pool {
enum Position : int { self, output_size };
}
namespace adaptive_avg_pool_backward {
enum Position : int { grad, input_size };
}
namespace upsample {
enum Position : int { self, output_size, scales, mode, align_corners, antialias };
}
namespace upsample_backward {
enum Position : int { grad, input_size, scales, mode, align_corners, antialias };
}
namespace grid_sampler {
enum Position : int { self, grid, mode, padding_mode, align_corners };
}
namespace grid_sampler_backward {
enum Position : int { grad, self, grid, mode, padding_mode, align_corners, needs };
}
namespace im2col {
enum Position : int { self, kernel_size, dilation, padding, stride };
}
namespace col2im {
enum Position : int { grad, output_size, kernel_size, dilation, padding, stride };
}
namespace constant_pad_nd {
enum Position : int { self, padding, value };
}
namespace reflection_replication_pad {
enum Position : int { self, padding, mode };
}
namespace reflection_replication_pad_backward {
enum Position : int { grad, input_size, padding, mode };
}
namespace native_batch_norm {
enum Position : int { input, weight, bias, running_mean, running_var, training, momentum, eps };
}
namespace native_batch_norm_backward {
enum Position : int { grad, input, weight, mean, rstd, training };
}
namespace native_layer_norm {
enum Position : int { input, normalized_shape, weight, bias, eps };
}
namespace native_layer_norm_backward {
enum Position : int { grad, input, normalized_shape, mean, rstd, weight };
}
namespace native_group_norm {
enum Position : int { input, weight, bias, num_groups, eps };
}
namespace native_group_norm_backward {
enum Position : int { grad, input, mean, rstd, weight, num_groups };
}
namespace fused_rms_norm {
enum Position : int { input, normalized_shape, weight, eps };
}
namespace fused_rms_norm_backward {
enum Position : int { grad, input, normalized_shape, rstd, weight };
}
namespace uniform {
enum Position : int { self, from, to };
}
namespace normal {
enum Position : int { self, mean, std };
}
namespace bernoulli_in_place {
enum Position : int { self, p };
}
namespace exponential {
enum Position : int { self, lambd };
}
namespace random_range {
enum Position : int { self, low, high };
}
namespace bernoulli {
enum Position : int { self };
}
namespace randperm {
enum Position : int { n, dtype, device };
}
namespace native_dropout {
enum Position : int { input, p };
}
namespace fused_sgd {
enum Position : int { params, grads, momentum_buffers, lr, weight_decay, momentum, dampening, nesterov, maximize, first };
}
namespace fused_adam {
enum Position : int { params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, lr, beta1, beta2, eps, weight_decay, decoupled, amsgrad, maximize, step };
}
namespace fused_rmsprop {
enum Position : int { params, grads, square_avgs, grad_avgs, momentum_buffers, lr, alpha, eps, weight_decay, momentum, centered, maximize };
}
namespace fused_adagrad {
enum Position : int { params, grads, state_sums, lr, lr_decay, weight_decay, eps, maximize, step };
}
namespace fused_adamax {
enum Position : int { params, grads, exp_avgs, exp_infs, lr, beta1, beta2, eps, weight_decay, maximize, step };
}
namespace fused_nadam {
enum Position : int { params, grads, exp_avgs, exp_avg_sqs, lr, beta1, beta2, eps, weight_decay, momentum, next_momentum, mu_product, decoupled, maximize, step };
}
namespace fused_radam {
enum Position : int { params, grads, exp_avgs, exp_avg_sqs, lr, beta1, beta2, eps, weight_decay, decoupled, maximize, step };
}
namespace fused_adadelta {
enum Position : int { params, grads, square_avgs, acc_deltas, lr, rho, eps, weight_decay, maximize };
}
namespace fused_rprop {
enum Position : int { params, grads, prevs, step_sizes, eta_minus, eta_plus, step_size_min, step_size_max, maximize };
}
namespace fused_asgd {
enum Position : int { params, grads, axs, lambd, eta, mu, weight_decay, maximize };
}

}  // namespace candelabra::positions

#endif  // CANDELABRA_POSITIONS_HPP
