// Where the tensors of jobs come from: random numbers and files.
//
// Random tensors that are the same on every machine, and the "random:SEED" source that names them.
//
// Thread-safety: free functions. Ownership: none is taken.
// Generator: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014), counter
// form: element i takes mix(mix(seed) + (i + 1) * 0x9E3779B97F4A7C15), so an element depends on the seed and its index
// alone.
#pragma once

#include <kiln/status.hpp>
#include <kiln/tensor.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace kiln::data {

// f16, f32 and f64: uniform in [-1, 1), from the top 11, 24 or 53 bits, every value exact. Integers and booleans: every
// value equally likely.
void fill_random(HostTensor& tensor, std::uint64_t seed);

// nullopt: `source` does not start with "random:". Otherwise the seed, or invalid_argument where what follows is not a
// decimal number below 2^64.
std::optional<Result<std::uint64_t>> parse_random(std::string_view source);

// "he:SEED": weights that keep the size of a network's activations (He, Zhang, Ren, Sun, "Delving deep into
// rectifiers", ICCV 2015). Uniform in ±sqrt(6 / n), n being the products of one output: c/groups * r * s of [k,
// c/groups, r, s], or the rows of a matrix. The elements of random:SEED times that number. invalid_argument: not f32,
// or another number of dimensions.
Status fill_he(HostTensor& tensor, std::uint64_t seed);
std::optional<Result<std::uint64_t>> parse_he(std::string_view source);  // as parse_random()

}  // namespace kiln::data
