// All shape rules. A catalogue row names its rule; registry.cpp and results/registry.cpp map the
// names to these functions.
#pragma once

#include "dispatch/call.hpp"

namespace candelabra {
// Null if there is none; the rules in results/ are no kernels'.
const ShapeRuleEntry* find_kernel_rule(std::string_view name);
}  // namespace candelabra

namespace candelabra::shapes {

// results/creation.cpp
void empty(Call& call);
void empty_factory(Call& call);
void zeros(Call& call);
void ones(Call& call);
void full(Call& call);
void empty_like(Call& call);
void zeros_like(Call& call);
void ones_like(Call& call);
void full_like(Call& call);
// Whether candelabra.empty fills new memory, which makes reads of uninitialized elements visible.
bool fill_uninitialized_memory();
void set_fill_uninitialized_memory(bool fills);
void empty_strided(Call& call);

// ranges.cpp
void arange(Call& call);
void linspace(Call& call);
void tril_triu_indices(Call& call);

// copying.cpp
void copy_(Call& call);

// results/copying.cpp
void clone(Call& call);
void to_copy(Call& call);
void to(Call& call);
void contiguous(Call& call);

// elementwise.cpp
void unary(Call& call);
void round(Call& call);
void square(Call& call);
void unary_float(Call& call);
void unary_real(Call& call);
void unary_angle(Call& call);
void unary_bool(Call& call);
void complex(Call& call);
void binary(Call& call);
void pow(Call& call);
void heaviside(Call& call);
void add(Call& call);
void subtract(Call& call);
void binary_float(Call& call);
void binary_integer(Call& call);
void divide(Call& call);
void compare(Call& call);
void compare_order(Call& call);
void where(Call& call);
void clamp(Call& call);
void addcmul(Call& call);
void addcdiv(Call& call);
void ternary_float(Call& call);
void loss_backward(Call& call);
void activation(Call& call);
void gelu(Call& call);
void activation_backward(Call& call);
void gelu_backward(Call& call);

// results/custom.cpp
void custom(Call& call);

// formula.cpp
void formula(Call& call);
void formula_float(Call& call);

// reduction.cpp
void sum(Call& call);
void mean(Call& call);
void prod(Call& call);
void extremum(Call& call);
void aminmax(Call& call);
void extremum_indices(Call& call);
void arg_extremum(Call& call);
void reduce_bool(Call& call);
void count_nonzero(Call& call);
void variance(Call& call);
void vector_norm(Call& call);
void logsumexp(Call& call);

// scan.cpp
void scan(Call& call);
void cummax_cummin(Call& call);
void logcumsumexp(Call& call);

// sorting.cpp
void sort(Call& call);
void topk(Call& call);
void searchsorted(Call& call);
void kthvalue_index(Call& call);
void mode_index(Call& call);
void histc(Call& call);

// results/views.cpp
void view(Call& call);
void reshape(Call& call);
void split(Call& call);
void view_dtype(Call& call);
void as_strided(Call& call);
void expand(Call& call);
void permute(Call& call);
void transpose(Call& call);
void t(Call& call);
void squeeze(Call& call);
void unsqueeze(Call& call);
void select(Call& call);
void slice(Call& call);
void narrow(Call& call);
void diagonal(Call& call);
void unfold(Call& call);
void movedim(Call& call);
void unflatten(Call& call);
void alias(Call& call);
void view_as_real(Call& call);
void view_as_complex(Call& call);
void detach(Call& call);

// joining.cpp
void cat(Call& call);
void stack(Call& call);
void flip(Call& call);
void triangle(Call& call);
void pixel_shuffle(Call& call);
void pixel_unshuffle(Call& call);
void channel_shuffle(Call& call);

// indexing.cpp
void gather(Call& call);
void scatter(Call& call);
void index_select(Call& call);
void index_add(Call& call);
void index_copy(Call& call);
void index_fill(Call& call);
void take(Call& call);
void embedding(Call& call);
void embedding_backward(Call& call);
void scatter_reduce(Call& call);
void embedding_bag(Call& call);
void embedding_bag_backward(Call& call);

// indexing_masks.cpp
void index(Call& call);
void index_put(Call& call);
void masked_fill(Call& call);
void masked_scatter(Call& call);
void masked_select(Call& call);
void nonzero(Call& call);

// linalg.cpp
void mm(Call& call);
void bmm(Call& call);
void mv(Call& call);
void dot(Call& call);
void addmm(Call& call);
void addmm_activation(Call& call);
void baddbmm(Call& call);
void linear(Call& call);
void cdist_forward(Call& call);
void pdist_forward(Call& call);
void cdist_backward(Call& call);

// factorization.cpp
void cholesky(Call& call);
void lu_factor(Call& call);
void ldl_factor(Call& call);
void geqrf(Call& call);
void qr(Call& call);
void householder_product(Call& call);

// spectral.cpp
void eigh(Call& call);
void eig(Call& call);
void svd(Call& call);

// solving.cpp
void solve(Call& call);
void invert(Call& call);
void solve_triangular(Call& call);
void factored_solve(Call& call);
void cholesky_solve(Call& call);
void lstsq(Call& call);
void batch_scalar(Call& call);
void slogdet(Call& call);
void pseudoinverse(Call& call);

// fft.cpp
void fft_c2c(Call& call);
void fft_r2c(Call& call);
void fft_r2c_nd(Call& call);
void fft_c2r(Call& call);

// special.cpp
void divisor(Call& call);
void frexp(Call& call);

// softmax.cpp
void softmax(Call& call);
void softmax_backward(Call& call);

// loss.cpp
void nll_loss_forward(Call& call);
void nll_loss_backward(Call& call);
void cross_entropy_forward(Call& call);
void cross_entropy_backward(Call& call);
void ctc_loss(Call& call);
void ctc_loss_backward(Call& call);

// attention.cpp
void scaled_dot_product_attention(Call& call);
void scaled_dot_product_attention_backward(Call& call);

// recurrent.cpp
void lstm_sequence(Call& call);
void lstm_sequence_backward(Call& call);
void recurrent_sequence(Call& call);
void recurrent_states(Call& call);
void recurrent_layer(Call& call);
void recurrent_layer_states(Call& call);
void recurrent_sequence_backward(Call& call);
void recurrent_stack(Call& call);
void recurrent_stack_kept(Call& call);
void recurrent_stack_backward(Call& call);

// convolution.cpp
void convolution(Call& call);
void convolution_backward_input(Call& call);
void convolution_backward_weight(Call& call);

// pooling.cpp
void max_pool(Call& call);
void max_pool_values(Call& call);
void adaptive_max_pool(Call& call);
void max_pool_backward(Call& call);
void avg_pool(Call& call);
void adaptive_avg_pool(Call& call);
void avg_pool_backward(Call& call);
void adaptive_avg_pool_backward(Call& call);

// resampling.cpp
void upsample(Call& call);
void upsample_backward(Call& call);
void grid_sampler(Call& call);
void grid_sampler_backward(Call& call);
void constant_pad_nd(Call& call);
void im2col(Call& call);
void col2im(Call& call);
void reflection_replication_pad(Call& call);
void reflection_replication_pad_backward(Call& call);

// normalization.cpp
void native_batch_norm(Call& call);
void native_batch_norm_backward(Call& call);
void native_layer_norm(Call& call);
void native_layer_norm_backward(Call& call);
void fused_rms_norm(Call& call);
void fused_rms_norm_backward(Call& call);
void native_group_norm(Call& call);
void native_group_norm_backward(Call& call);

// random.cpp
void fill(Call& call);
void uniform(Call& call);
void normal(Call& call);
void exponential(Call& call);
void bernoulli_in_place(Call& call);
void random_range(Call& call);
void randperm(Call& call);
void native_dropout(Call& call);

// optimizer.cpp
void optimizer(Call& call);
void optimizer_with_step(Call& call);
void fused_sgd(Call& call);
void fused_adam(Call& call);
void fused_rmsprop(Call& call);

}  // namespace candelabra::shapes
