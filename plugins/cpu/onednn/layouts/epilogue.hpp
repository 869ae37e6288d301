// The attributes that every primitive of this module shares: its scratchpad is the caller's, its activation is fused.
//
// Thread-safety: values.
#pragma once

#include <kiln/kernel.hpp>

#include <oneapi/dnnl/dnnl.hpp>

namespace kiln::cpu {

inline void append_activation(dnnl::post_ops& operations, Activation activation) {
  if (activation == Activation::relu) operations.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
}

inline dnnl::primitive_attr attributes_with(const dnnl::post_ops& operations) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_post_ops(operations);
  return attributes;
}

inline dnnl::primitive_attr attributes_of(Activation activation) {
  dnnl::post_ops operations;
  append_activation(operations, activation);
  return attributes_with(operations);
}

}  // namespace kiln::cpu
