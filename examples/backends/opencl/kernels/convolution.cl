// Convolution as matrix products: im2col, and its transpose col2im. T is the dtype. One to three
// spatial dimensions are seen as three. The columns of an image are a matrix (C * KD * KH * KW, OD
// * OH * OW).

// The struct of the same name in src/convolution.cpp. Spatial lists are depth, height, width.
typedef struct {
  long images, channels;
  long in[3], out[3], kernel_size[3], stride[3], padding[3], dilation[3];
  long strides[5];  // of the image: N, C, depth, height, width
  ulong offset;
} Unfolding;

__kernel void im2col(__global MEMORY(T)* columns, const __global char* image, const Unfolding u) {
  const long taps = u.kernel_size[0] * u.kernel_size[1] * u.kernel_size[2], places = u.out[0] * u.out[1] * u.out[2];
  long i = get_global_id(0);
  if (i >= u.images * u.channels * taps * places) return;
  const long target = i;
  const long place = i % places, tap = i / places % taps, channel = i / places / taps % u.channels,
             n = i / places / taps / u.channels;
  const long p[3] = {place / u.out[2] / u.out[1], place / u.out[2] % u.out[1], place % u.out[2]};
  const long k[3] = {tap / u.kernel_size[2] / u.kernel_size[1], tap / u.kernel_size[2] % u.kernel_size[1],
                     tap % u.kernel_size[2]};
  long source = n * u.strides[0] + channel * u.strides[1];
  bool inside = true;
  for (int d = 0; d < 3; ++d) {
    const long at = p[d] * u.stride[d] - u.padding[d] + k[d] * u.dilation[d];
    inside = inside && at >= 0 && at < u.in[d];
    source += at * u.strides[2 + d];
  }
  columns[target] = inside ? AT_CONST(T, image, u.offset)[source] : 0;
}

// Each element of the image adds the columns that were made of it, in a fixed order.
__kernel void col2im(__global char* image, const __global MEMORY(T)* columns, const Unfolding u) {
  const long i = get_global_id(0), volume = u.in[0] * u.in[1] * u.in[2];
  if (i >= u.images * u.channels * volume) return;
  const long places = u.out[0] * u.out[1] * u.out[2];
  const long at = i % volume, channel = i / volume % u.channels, n = i / volume / u.channels;
  const long x[3] = {at / u.in[2] / u.in[1], at / u.in[2] % u.in[1], at % u.in[2]};
  SUM(T) sum = 0;
  long row = (n * u.channels + channel) * u.kernel_size[0] * u.kernel_size[1] * u.kernel_size[2];
  for (long kd = 0; kd < u.kernel_size[0]; ++kd)
    for (long kh = 0; kh < u.kernel_size[1]; ++kh)
      for (long kw = 0; kw < u.kernel_size[2]; ++kw, ++row) {
        const long k[3] = {kd, kh, kw};
        long place = 0;
        bool inside = true;
        for (int d = 0; d < 3; ++d) {
          const long from = x[d] + u.padding[d] - k[d] * u.dilation[d], p = from / u.stride[d];
          inside = inside && from >= 0 && from % u.stride[d] == 0 && p < u.out[d];
          place = place * u.out[d] + p;
        }
        if (inside) sum += LOAD(T, columns, row * places + place);
      }
  STORE(T, AT(T, image, u.offset),
        n * u.strides[0] + channel * u.strides[1] + x[0] * u.strides[2] + x[1] * u.strides[3] + x[2] * u.strides[4],
        sum);
}
