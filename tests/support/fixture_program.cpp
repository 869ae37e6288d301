#include "support/fixture_program.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace kiln::support {
namespace {

using Bindings = std::span<const std::span<std::byte>>;
using Constants = std::map<std::string, double>;

std::span<float> floats(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

Status copy(Bindings b, const Constants&) {
  if (b[0].size() != b[1].size()) {
    return invalid_argument("copy: " + std::to_string(b[0].size()) + " bytes to " + std::to_string(b[1].size()));
  }
  std::memcpy(b[1].data(), b[0].data(), b[0].size());
  return {};
}

Status add(Bindings b, const Constants&) {
  const std::size_t count = std::min({b[0].size(), b[1].size(), b[2].size()}) / sizeof(float);
  for (std::size_t i = 0; i < count; ++i) floats(b[2])[i] = floats(b[0])[i] + floats(b[1])[i];
  return {};
}

Status scale(Bindings b, const Constants& constants) {
  const auto factor = static_cast<float>(constants.at("FACTOR"));
  const std::size_t count = std::min(b[0].size(), b[1].size()) / sizeof(float);
  for (std::size_t i = 0; i < count; ++i) floats(b[1])[i] = floats(b[0])[i] * factor;
  return {};
}

Status fill(Bindings b, const Constants& constants) {
  std::ranges::fill(floats(b[0]), static_cast<float>(constants.at("VALUE")));
  return {};
}

Status add_one(Bindings b, const Constants&) {
  for (float& value : floats(b[0])) value += 1;
  return {};
}

struct Function {
  const char* name;
  std::size_t bindings;
  const char* constant;  // the Define it cannot do without, or null
  Status (*run)(Bindings, const Constants&);
};

constexpr Function functions[] = {
    {"copy", 2, nullptr, copy}, {"add", 3, nullptr, add},         {"scale", 2, "FACTOR", scale},
    {"fill", 1, "VALUE", fill}, {"add_one", 1, nullptr, add_one},
};

const Function* find_function(std::string_view name) {
  for (const Function& function : functions) {
    if (name == function.name) return &function;
  }
  return nullptr;
}

void activate(float& value, Activation activation) {
  if (activation != Activation::none) value = std::max(value, 0.0f);
  if (activation == Activation::relu6) value = std::min(value, 6.0f);
}

void run_layer(const Conv2dSpec& p, Bindings b) {
  const auto in = floats(b[0]), weights = floats(b[1]), out = floats(b.back());
  const bool biased = p.bias == Bias::per_channel;
  const std::int64_t per_group = p.c / p.groups, k_per_group = p.k / p.groups;
  std::size_t at = 0;
  for (std::int64_t n = 0; n < p.n; ++n)
    for (std::int64_t k = 0; k < p.k; ++k)
      for (std::int64_t y = 0; y < p.out_h(); ++y)
        for (std::int64_t x = 0; x < p.out_w(); ++x) {
          double sum = biased ? static_cast<double>(floats(b[2])[static_cast<std::size_t>(k)]) : 0.0;
          for (std::int64_t c = 0; c < per_group; ++c)
            for (std::int64_t r = 0; r < p.r; ++r)
              for (std::int64_t s = 0; s < p.s; ++s) {
                const std::int64_t iy = y * p.stride_y - p.pad_y + r * p.dilation_y;
                const std::int64_t ix = x * p.stride_x - p.pad_x + s * p.dilation_x;
                if (iy < 0 || iy >= p.h || ix < 0 || ix >= p.w) continue;
                const std::int64_t channel = k / k_per_group * per_group + c;
                const auto i = static_cast<std::size_t>(((n * p.c + channel) * p.h + iy) * p.w + ix);
                const auto w = static_cast<std::size_t>(((k * per_group + c) * p.r + r) * p.s + s);
                sum += static_cast<double>(in[i]) * static_cast<double>(weights[w]);
              }
          float& value = out[at++];
          value = static_cast<float>(sum);
          activate(value, p.activation);
        }
}

void run_layer(const GemmSpec& p, Bindings b) {
  const auto a = floats(b[0]), right = floats(b[1]), out = floats(b.back());
  for (std::int64_t m = 0; m < p.m; ++m)
    for (std::int64_t n = 0; n < p.n; ++n) {
      double sum = p.bias == Bias::per_channel ? static_cast<double>(floats(b[2])[static_cast<std::size_t>(n)]) : 0.0;
      for (std::int64_t k = 0; k < p.k; ++k) {
        sum += static_cast<double>(a[static_cast<std::size_t>(m * p.k + k)]) *
               static_cast<double>(right[static_cast<std::size_t>(k * p.n + n)]);
      }
      float& value = out[static_cast<std::size_t>(m * p.n + n)];
      value = static_cast<float>(sum);
      activate(value, p.activation);
    }
}

void run_layer(const Pool2dSpec& p, Bindings b) {
  const auto in = floats(b[0]), out = floats(b[1]);
  std::size_t at = 0;
  for (std::int64_t plane = 0; plane < p.n * p.c; ++plane)
    for (std::int64_t y = 0; y < p.out_h(); ++y)
      for (std::int64_t x = 0; x < p.out_w(); ++x) {
        double sum = 0;
        float largest = -INFINITY;
        int count = 0;
        for (std::int64_t iy = y * p.stride_y - p.pad_y; iy < y * p.stride_y - p.pad_y + p.r; ++iy)
          for (std::int64_t ix = x * p.stride_x - p.pad_x; ix < x * p.stride_x - p.pad_x + p.s; ++ix) {
            if (iy < 0 || iy >= p.h || ix < 0 || ix >= p.w) continue;
            const float value = in[static_cast<std::size_t>((plane * p.h + iy) * p.w + ix)];
            sum += static_cast<double>(value);
            largest = std::max(largest, value);
            ++count;
          }
        out[at++] = p.kind == PoolKind::maximum ? largest : static_cast<float>(sum / count);
      }
}

void run_layer(const AddSpec& p, Bindings b) {
  for (std::size_t i = 0; i < floats(b[2]).size(); ++i) {
    float& value = floats(b[2])[i];
    value = floats(b[0])[i] + floats(b[1])[i];
    activate(value, p.activation);
  }
}

void run_layer(const SoftmaxSpec& p, Bindings b) {
  const auto in = floats(b[0]), out = floats(b[1]);
  const auto length = static_cast<std::size_t>(shape_of(p.shape).back());
  for (std::size_t row = 0; row < in.size(); row += length) {
    const float largest = *std::ranges::max_element(in.subspan(row, length));
    double sum = 0;
    for (std::size_t i = row; i < row + length; ++i) sum += std::exp(static_cast<double>(in[i] - largest));
    for (std::size_t i = row; i < row + length; ++i) {
      out[i] = static_cast<float>(std::exp(static_cast<double>(in[i] - largest)) / sum);
    }
  }
}

void run_layer(const ActivationSpec& p, Bindings b) {
  for (std::size_t i = 0; i < floats(b[0]).size(); ++i) {
    float& value = floats(b[1])[i];
    value = floats(b[0])[i];
    activate(value, p.activation);
  }
}

template <class Spec>
concept IsComputed = requires(const Spec& spec, Bindings bindings) {
  run_layer(spec, bindings);
};

bool is_computed(const KernelSpec& spec) {
  return std::visit([]<class Spec>(const Spec&) { return IsComputed<Spec>; }, spec);
}

std::string trimmed(const std::string& text) {
  const char* blanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(blanks);
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

}  // namespace

FixtureProgram::~FixtureProgram() { --*live_; }

Result<std::unique_ptr<FixtureProgram>> FixtureProgram::compile(const KernelSource& source, std::uint64_t charge,
                                                                std::shared_ptr<std::atomic<std::int64_t>> live) {
  std::unique_ptr<FixtureProgram> program(new FixtureProgram);
  program->charge_ = charge;
  program->live_ = std::move(live);
  ++*program->live_;
  program->function_ = trimmed(source.text);
  std::vector<Define> constants = source.constants;
  if (source.dialect == Dialect::library) {
    if (!source.spec) return invalid_argument("fixture compiler: error: a library source without a spec");
    program->function_ = operation(*source.spec);
    if (const auto* user = std::get_if<UserKernelSpec>(&*source.spec)) {
      program->function_ = trimmed(user->text);
      constants = user->constants;
    } else if (!is_computed(*source.spec)) {
      return unsupported("fixture compiler: error: no " + program->function_);
    } else {
      program->spec_ = source.spec;
    }
  }
  program->image_ = "function " + program->function_ + "\n";
  for (const Define& define : constants) {
    program->constants_[define.name] = std::strtod(define.text.c_str(), nullptr);
    program->image_ += "define " + define.name + " " + define.text + "\n";
  }
  if (program->spec_) {
    program->image_ += "spec " + canonical_text(*program->spec_) + "\n";
    return program;
  }
  const Function* function = find_function(program->function_);
  if (function == nullptr) {
    return invalid_argument("fixture compiler: 1:1: error: no function named '" + program->function_ + "'");
  }
  if (function->constant != nullptr && !program->constants_.contains(function->constant)) {
    return invalid_argument("fixture compiler: 1:1: error: " + program->function_ + " needs the constant " +
                            function->constant);
  }
  return program;
}

Status FixtureProgram::check(std::span<const std::span<std::byte>> bindings) const {
  if (spec_) {
    const std::vector<TensorDecl> tensors = tensors_of(*spec_);
    if (bindings.size() != tensors.size()) {
      return invalid_argument(function_ + ": " + std::to_string(bindings.size()) + " bindings, expected " +
                              std::to_string(tensors.size()));
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (bindings[i].size() >= tensors[i].bytes) continue;
      return invalid_argument(function_ + ": binding " + tensors[i].name + " has " +
                              std::to_string(bindings[i].size()) + " bytes, expected " +
                              std::to_string(tensors[i].bytes));
    }
    return {};
  }
  const std::size_t expected = find_function(function_)->bindings;
  if (bindings.size() == expected) return {};
  return invalid_argument(function_ + ": " + std::to_string(bindings.size()) + " bindings, expected " +
                          std::to_string(expected));
}

Status FixtureProgram::run(std::span<const std::span<std::byte>> bindings) const {
  if (Status status = check(bindings); !status.ok()) return status;
  if (!spec_) return find_function(function_)->run(bindings, constants_);
  std::vector<std::span<std::byte>> tensors;  // without what a buffer has behind its tensor
  for (const TensorDecl& tensor : tensors_of(*spec_)) tensors.push_back(bindings[tensors.size()].first(tensor.bytes));
  std::visit(
      [&]<class Spec>(const Spec& spec) {
        if constexpr (IsComputed<Spec>) run_layer(spec, tensors);
      },
      *spec_);
  return {};
}

}  // namespace kiln::support
