// The steps of SGD and Adam, one parameter a launch. T is the dtype; numbers are those of its
// compute type. All operands walk together: 0 is the parameter, 1 the gradient, 2 and 3 the state.

// parameters: lr, weight_decay, momentum, dampening
__kernel void sgd(__global char* param, const __global char* grad, __global char* buffer, const Operands g,
                  const long nesterov, const long maximize, const long first, const long has_momentum) {
  const long i = get_global_id(0);
  if (i >= g.numel) return;
  __global MEMORY(T)* p = AT(T, param, g.offsets[0]) + position(&g, 0, i);
  const COMPUTE(T) x = LOAD(T, p, 0);
  COMPUTE(T) d = LOAD(T, AT_CONST(T, grad, g.offsets[1]), position(&g, 1, i));
  if (maximize) d = -d;
  d += NUMBER(T, g.parameters[1]) * x;
  if (has_momentum) {
    __global MEMORY(T)* state = AT(T, buffer, g.offsets[2]) + position(&g, 2, i);
    const COMPUTE(T) momentum = NUMBER(T, g.parameters[2]);
    const COMPUTE(T) velocity = first ? d : momentum * LOAD(T, state, 0) + (1 - NUMBER(T, g.parameters[3])) * d;
    STORE(T, state, 0, velocity);
    d = nesterov ? d + momentum * velocity : velocity;
  }
  STORE(T, p, 0, x - NUMBER(T, g.parameters[0]) * d);
}

// The struct of the same name in src/optimizer.cpp: bits of the compute type.
typedef struct {
  ulong beta1, beta2, eps, weight_decay, decay, step_size, correction;
  long decoupled, maximize;
} Adam;

// decay = 1 - lr * weight_decay, step_size = lr / (1 - beta1^step), correction = sqrt(1 -
// beta2^step)
__kernel void adam(__global char* param, const __global char* grad, __global char* first, __global char* second,
                   const Operands g, const Adam o) {
  const long i = get_global_id(0);
  if (i >= g.numel) return;
  __global MEMORY(T)* p = AT(T, param, g.offsets[0]) + position(&g, 0, i);
  __global MEMORY(T)* mean = AT(T, first, g.offsets[2]) + position(&g, 2, i);
  __global MEMORY(T)* square = AT(T, second, g.offsets[3]) + position(&g, 3, i);
  COMPUTE(T) x = LOAD(T, p, 0), d = LOAD(T, AT_CONST(T, grad, g.offsets[1]), position(&g, 1, i));
  if (o.maximize) d = -d;
  if (o.decoupled)
    x *= NUMBER(T, o.decay);
  else
    d += NUMBER(T, o.weight_decay) * x;
  const COMPUTE(T) beta1 = NUMBER(T, o.beta1), beta2 = NUMBER(T, o.beta2);
  const COMPUTE(T) m = beta1 * LOAD(T, mean, 0) + (1 - beta1) * d;
  const COMPUTE(T) v = beta2 * LOAD(T, square, 0) + (1 - beta2) * d * d;
  STORE(T, mean, 0, m);
  STORE(T, square, 0, v);
  STORE(T, p, 0, x - NUMBER(T, o.step_size) * m / (sqrt(v) / NUMBER(T, o.correction) + NUMBER(T, o.eps)));
}
