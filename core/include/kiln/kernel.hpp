// KernelSpec (what to compute), KernelSource (how, for one pass) and KernelPlan (ordered passes bound to tensors).
//
// Thread-safety: values. Ownership: all own their contents; a plan refers to tensors by index only, and shares the
// Constants that it brings.
// Shapes follow the usual convolution formula: out = (in + 2*pad - dilation*(kernel-1) - 1) / stride + 1, rounded down.
// Tensors are fp32, NCHW; weights are [k, c/groups, r, s]; bias is [k].
#pragma once

#include <kiln/status.hpp>
#include <kiln/tensor.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kiln {

enum class Activation : std::uint8_t { invalid = 0, none, relu };
enum class Bias : std::uint8_t { invalid = 0, none, per_channel };
// direct: rounding of a plain sum of products. winograd: the larger error of Winograd's transforms is allowed too.
enum class Accuracy : std::uint8_t { invalid = 0, direct, winograd };

std::string_view to_string(Activation activation) noexcept;
std::string_view to_string(Accuracy accuracy) noexcept;

struct Conv2dSpec {
  std::int64_t n = 1, c = 0, h = 0, w = 0;  // input
  std::int64_t k = 0, r = 0, s = 0;         // output channels, kernel height, kernel width
  std::int64_t stride_y = 1, stride_x = 1;
  std::int64_t pad_y = 0, pad_x = 0;  // symmetric
  std::int64_t dilation_y = 1, dilation_x = 1;
  std::int64_t groups = 1;
  DType dtype = DType::f32;
  Bias bias = Bias::none;
  Activation activation = Activation::none;
  Accuracy accuracy = Accuracy::direct;

  std::int64_t out_h() const noexcept;
  std::int64_t out_w() const noexcept;
  bool operator==(const Conv2dSpec&) const = default;
};

// C[m, n] = A[m, k] · B[k, n] (+ bias[n]) ; B and the bias are Constants.
struct GemmSpec {
  std::int64_t m = 0, n = 0, k = 0;
  DType dtype = DType::f32;
  Bias bias = Bias::none;
  Activation activation = Activation::none;

  bool operator==(const GemmSpec&) const = default;
};

enum class Dialect : std::uint8_t { invalid = 0, glsl, opencl_c, library, code_object };
enum class Access : std::uint8_t { invalid = 0, read, write, read_write };

// How a program reads a binding's bytes. texels, image: as an array of texels of four floats each, fetched through the
// texture unit or the image unit; such a binding is read-only, and the program sees its bytes rounded up to a texel.
// uniforms: the tensor of a UserKernelSpec's uniforms; read-only.
enum class View : std::uint8_t { invalid = 0, storage, texels, image, uniforms };

std::string_view to_string(Dialect dialect) noexcept;
std::string_view to_string(View view) noexcept;

struct Define {  // becomes "#define name text" in front of a source
  std::string name;
  std::string text;
  bool operator==(const Define&) const = default;
};
bool is_define_name(std::string_view name) noexcept;  // letters, digits and "_", no digit first
bool is_define_text(std::string_view text) noexcept;  // one line that cannot grow into the next

// What a binding of a user's kernel is. buffer: device memory. value: an argument passed by value (OpenCL C). local:
// local memory of each workgroup, passed as a pointer argument (OpenCL C).
enum class BindingKind : std::uint8_t { invalid = 0, buffer, value, local };

// The user's own kernel. Its tensors are those bindings that are not `local`, in order, then one tensor that holds the
// values of all uniforms, where there are any.
struct UserKernelSpec {
  struct Binding {
    Access access = Access::invalid;  // buffer: any; value: read; local: read_write
    std::uint64_t bytes = 0;
    BindingKind kind = BindingKind::buffer;
    // Of the tensor, compared with what the program declares; invalid: neither is compared.
    DType dtype = DType::invalid;
    Shape shape{};
    // Which resource it is. GLSL: the block of this name, else the one at binding `number`, else at the position in the
    // list. OpenCL C: always the argument at the position in the list.
    std::string name{};
    std::optional<std::uint32_t> number{};
    bool operator==(const Binding&) const = default;
  };
  // A GLSL uniform outside a block. Its values lie in the tensor of uniforms, 8 bytes each, one uniform after another:
  // an int64 for boolean and integer, a double for number. They are converted to the type that the program declares.
  struct Uniform {
    enum class Type : std::uint8_t { invalid = 0, boolean, integer, number };
    std::string name;
    Type type = Type::invalid;
    std::vector<std::uint32_t> shape;  // {}: a scalar; {3}: vec3 or float[3]; {2, 2}: a mat2 row by row, or vec2[2]
    bool operator==(const Uniform&) const = default;
  };
  struct Parameter {  // a #define that tuning chooses (kiln/kernel_parameters.hpp)
    std::string name;
    std::vector<std::string> texts;  // to try; the first serves untuned
    bool operator==(const Parameter&) const = default;
  };
  std::string path;                   // a label for messages; not part of what is computed
  std::vector<std::string> includes;  // likewise: [i] is the file of source string i + 1 of the text's #line directives
  std::string text;
  Dialect dialect = Dialect::invalid;  // glsl or opencl_c
  std::string entry = "main";          // opencl_c: a kernel's name, or "main": the only one there is
  std::vector<Define> constants;
  std::vector<Binding> bindings;
  std::vector<Uniform> uniforms;
  std::array<std::uint32_t, 3> grid{1, 1, 1};       // workgroups
  std::array<std::uint32_t, 3> workgroup{0, 0, 0};  // lanes; zeros: the text declares it
  std::vector<Parameter> parameters;
  // Where one is not empty it says what `grid` is: integers, constants and parameters, + - * / % and parentheses.
  std::array<std::string, 3> grid_expressions;

  bool operator==(const UserKernelSpec&) const = default;
};

std::uint64_t values_in(const UserKernelSpec::Uniform& uniform) noexcept;  // product of its shape; 1 for a scalar

using KernelSpec = std::variant<Conv2dSpec, GemmSpec, UserKernelSpec>;

// invalid_argument that names the field, its value and what was expected.
Status validate(const KernelSpec& spec);

std::string_view operation(const KernelSpec& spec) noexcept;  // "conv2d", "gemm", "kernel"
// Direct floating-point operations (a multiply-add counts two); 0 for a user's kernel.
double flops(const KernelSpec& spec) noexcept;
// Bytes that must be read and written at least once; for a user's kernel, those of its bindings.
double bytes_moved(const KernelSpec& spec);
// One line that determines the computation: "conv2d n=1 c=3 …". Equal text, equal result.
std::string canonical_text(const KernelSpec& spec);

enum class TensorRole : std::uint8_t { invalid = 0, input, output, inout, constant };

struct TensorDecl {
  std::string name;
  TensorRole role = TensorRole::invalid;
  std::uint64_t bytes = 0;
  bool operator==(const TensorDecl&) const = default;
};

// The tensors of a spec in the order in which requests pass them:
// conv2d: input, weights, [bias], output · gemm: a, b, [bias], c · kernel: its bindings but local ones, [uniforms].
std::vector<TensorDecl> tensors_of(const KernelSpec& spec);

// How one pass is computed. Deterministic: the same spec, device and variant give the same bytes. Everything here but
// `files` and `spec` is part of the program's key (`text` stands for the spec where the dialect is library).
struct KernelSource {
  Dialect dialect = Dialect::invalid;
  std::string text;
  std::string entry = "main";  // opencl_c: a kernel's name, or "main": the only one there is
  std::vector<Define> constants;
  std::vector<Access> bindings;                     // one per binding, in order
  std::vector<View> views;                          // one per binding; empty: all are storage
  std::array<std::uint32_t, 3> workgroup{0, 0, 0};  // lanes; zeros: the text declares it
  std::vector<std::string> files;  // for messages: [i] is source string i of #line; [0] the text itself
  std::optional<KernelSpec> spec;  // library only: what to compute; text is canonical_text(*spec)
};

// constant: a Constant of the plan's own, which no request passes.
enum class BindingSource : std::uint8_t { invalid = 0, tensor, scratch, prepared, constant };

struct Binding {
  BindingSource source = BindingSource::invalid;
  std::uint32_t index = 0;  // into the plan's tensors, scratch, prepared or constants
};

struct Pass {
  KernelSource source;
  std::vector<Binding> bindings;               // as many as source.bindings
  std::array<std::uint32_t, 3> grid{1, 1, 1};  // workgroups; a launch parameter, not part of the program
};

struct ScratchDecl {  // lives for one job; contents undefined at its start
  std::string name;
  std::uint64_t bytes = 0;
};

struct PreparedDecl {        // a packed form of one Constant, kept per (digest, layout, device)
  std::uint32_t tensor = 0;  // index of the tensor, whose role is constant
  std::string layout;        // names the packing: part of the key of the packed form
  std::uint64_t bytes = 0;
};

struct KernelPlan {
  std::string variant;  // "direct/plain": family and choice, for reports and feedback
  std::vector<TensorDecl> tensors;
  std::vector<ScratchDecl> scratch;
  std::vector<PreparedDecl> prepared;
  // What a program that serves many shapes is told of this one. Read only, and no part of any program's key.
  std::vector<std::shared_ptr<const Constant>> constants;
  std::vector<Pass> prepare;  // prepare[i] fills prepared[i]; binds its constant, that packed form and `constants` only
  std::vector<Pass> passes;   // in order; each sees what the ones before wrote
  // What whoever runs it should be told, a sentence each; the report of each run has them. No part of any key.
  std::vector<std::string> notes;
};

// Every index in range, every access allowed by its role and its view, prepare and prepared of one length, grids
// positive.
Status validate(const KernelPlan& plan);

}  // namespace kiln
