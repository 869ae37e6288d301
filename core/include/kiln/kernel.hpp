// Kernel types: KernelSpec (what to compute), KernelSource (code of one pass), and KernelPlan (passes bound to
// tensors).
//
// Output size: out = (in + 2*pad - dilation*(kernel-1) - 1) / stride + 1, rounded down. Tensors are fp32, NCHW; weights
// are [k, c/groups, r, s]; bias is [k]. Sizes are in bytes.
// Thread-safety: values. Ownership: each type owns its contents; a plan refers to tensors by index and shares its Constants.
//
//   kiln::Conv2dSpec spec;
//   spec.c = 8, spec.h = 20, spec.w = 20, spec.k = 16, spec.r = 3, spec.s = 3, spec.pad_y = 1, spec.pad_x = 1;
//   if (kiln::Status status = kiln::validate(spec); !status.ok()) return status;
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

namespace [[gnu::visibility("default")]] kiln {

// relu: max(x, 0). relu6: min(max(x, 0), 6).
enum class Activation : std::uint8_t { invalid = 0, none, relu, relu6 };
enum class Bias : std::uint8_t { invalid = 0, none, per_channel };
// average: of the elements inside the input, without padding.
enum class PoolKind : std::uint8_t { invalid = 0, maximum, average };
// Allowed rounding error. direct: the error of a plain sum of products. winograd: the larger error of Winograd transforms.
enum class Accuracy : std::uint8_t { invalid = 0, direct, winograd };

std::string_view to_string(Activation activation) noexcept;
std::string_view to_string(Accuracy accuracy) noexcept;
std::string_view to_string(PoolKind kind) noexcept;

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

// C[m, n] = A[m, k] · B[k, n] (+ bias[n]). B and the bias are Constants.
struct GemmSpec {
  std::int64_t m = 0, n = 0, k = 0;
  DType dtype = DType::f32;
  Bias bias = Bias::none;
  Activation activation = Activation::none;

  bool operator==(const GemmSpec&) const = default;
};

// The maximum or the average of each window of a plane. With r = h and s = w, the window is the whole plane (global
// pooling).
struct Pool2dSpec {
  std::int64_t n = 1, c = 0, h = 0, w = 0;  // input
  std::int64_t r = 0, s = 0;                // window height, window width
  std::int64_t stride_y = 1, stride_x = 1;
  std::int64_t pad_y = 0, pad_x = 0;  // symmetric; less than the window
  DType dtype = DType::f32;
  PoolKind kind = PoolKind::maximum;

  std::int64_t out_h() const noexcept;
  std::int64_t out_w() const noexcept;
  bool operator==(const Pool2dSpec&) const = default;
};

// A shape of one to four dimensions. Zeros at the end mean fewer dimensions.
using Extents = std::array<std::int64_t, 4>;
Shape shape_of(const Extents& extents);

// Element by element: activation(a + b).
struct AddSpec {
  Extents shape{};
  DType dtype = DType::f32;
  Activation activation = Activation::none;
  bool operator==(const AddSpec&) const = default;
};

// exp(x) / Σ exp(x) along the last dimension.
struct SoftmaxSpec {
  Extents shape{};
  DType dtype = DType::f32;
  bool operator==(const SoftmaxSpec&) const = default;
};

// Element by element: activation(x), not Activation::none.
struct ActivationSpec {
  Extents shape{};
  DType dtype = DType::f32;
  Activation activation = Activation::relu;
  bool operator==(const ActivationSpec&) const = default;
};

enum class TensorRole : std::uint8_t { invalid = 0, input, output, inout, constant };
enum class Dialect : std::uint8_t { invalid = 0, glsl, opencl_c, library, code_object };
enum class Access : std::uint8_t { invalid = 0, read, write, read_write };

// The way in which a program reads a binding. texels, image: a read-only array of texels of four floats each, through the
// texture or image unit; the size is rounded up to a texel. uniforms: the tensor of a UserKernelSpec's uniforms, read-only.
// pixels: the image or sampled texture of a user kernel; the device copies it from and to the tensor.
enum class View : std::uint8_t { invalid = 0, storage, texels, image, uniforms, pixels };

std::string_view to_string(Dialect dialect) noexcept;
std::string_view to_string(View view) noexcept;

struct Define {  // adds "#define name text" before a source
  std::string name;
  std::string text;
  bool operator==(const Define&) const = default;
};
bool is_define_name(std::string_view name) noexcept;  // letters, digits and "_", not beginning with a digit
bool is_define_text(std::string_view text) noexcept;  // one line that does not continue on the next

// Type of a user kernel's binding. buffer: device memory. value: an argument by value (OpenCL C). local: local memory
// of each workgroup, a pointer argument (OpenCL C). image, sampler: a GLSL image, sampler or texture, found by name.
// sampler_state: the filter and wrap of a separate sampler without a texture (Vulkan), found by name. grid: three uint32 in
// device memory that define the grid when the kernel begins; the program does not see this binding.
enum class BindingKind : std::uint8_t { invalid = 0, buffer, value, local, image, sampler, sampler_state, grid };

// Texel formats of images, with the names of GLSL's layout qualifiers. declared: the format in the program's text, or the
// default format for the tensor.
enum class ImageFormat : std::uint8_t {
  declared = 0,
  rgba32f,
  rgba16f,
  rg32f,
  rg16f,
  r11f_g11f_b10f,
  r32f,
  r16f,
  rgba16,
  rgb10_a2,
  rgba8,
  rg16,
  rg8,
  r16,
  r8,
  rgba16_snorm,
  rgba8_snorm,
  rg16_snorm,
  rg8_snorm,
  r16_snorm,
  r8_snorm,
  rgba32i,
  rgba16i,
  rgba8i,
  rg32i,
  rg16i,
  rg8i,
  r32i,
  r16i,
  r8i,
  rgba32ui,
  rgba16ui,
  rgb10_a2ui,
  rgba8ui,
  rg32ui,
  rg16ui,
  rg8ui,
  r32ui,
  r16ui,
  r8ui,
};
inline constexpr std::size_t image_formats = 40;  // with `declared`

// normalized: integers that represent 0 to 1 or -1 to 1. real: floating point. integer: no conversion.
enum class TexelKind : std::uint8_t { invalid = 0, normalized, real, integer };
struct ImageFormatFacts {
  std::string_view name;
  std::uint32_t channels = 0;
  TexelKind kind = TexelKind::invalid;
  DType dtype = DType::invalid;  // of a tensor that represents every texel exactly
  bool packed = false;           // no dtype has exactly these texels: the image can only be a result
};
const ImageFormatFacts& facts_of(ImageFormat format) noexcept;
std::optional<ImageFormat> image_format_named(std::string_view name) noexcept;

enum class TextureFilter : std::uint8_t { automatic = 0, nearest, linear };  // automatic: nearest for integers
enum class TextureWrap : std::uint8_t { clamp = 0, repeat, mirror, border };
std::string_view to_string(TextureFilter filter) noexcept;
std::string_view to_string(TextureWrap wrap) noexcept;

// A kernel of the user. Its tensors are, in order, one per binding with has_tensor(), then one tensor with the values of all
// uniforms, if any.
struct UserKernelSpec {
  struct Binding {
    Access access = Access::invalid;  // buffer: any; value: read; local: read_write
    std::uint64_t bytes = 0;
    BindingKind kind = BindingKind::buffer;
    // Type and shape of the tensor, compared with the program's declaration. invalid: not compared.
    DType dtype = DType::invalid;
    Shape shape{};
    // Resource of the binding. GLSL: the block `name`; without a name, the block at binding `number`; without both, the block
    // at the position in the list. OpenCL C: always the argument at the position in the list.
    std::string name{};
    std::optional<std::uint32_t> number{};
    // image, sampler: the tensor is [W], [H, W], [D, H, W] or [layers, …], with a last dimension of 1 to 4 channels.
    ImageFormat format = ImageFormat::declared;
    TextureFilter filter = TextureFilter::automatic;
    TextureWrap wrap = TextureWrap::clamp;
    std::uint64_t first = 0;  // grid: index of the tensor's element for x; y and z follow
    bool picture = false;     // image, sampler: the tensor is [H, W, C], with one layer or a depth of one
    bool shown = false;       // image: the result is for a PNG, so values may be clamped to 0 to 1 and rounded
    bool operator==(const Binding&) const = default;
  };
  // A GLSL uniform outside a block, or a member of a uniform block ("Params.scale"). The tensor of uniforms has its
  // values, 8 bytes each: int64 for boolean and integer, double for number. Kiln converts them to the declared type.
  struct Uniform {
    enum class Type : std::uint8_t { invalid = 0, boolean, integer, number };
    std::string name;
    Type type = Type::invalid;
    std::vector<std::uint32_t> shape;  // {}: a scalar; {3}: vec3 or float[3]; {2, 2}: a mat2 row by row, or vec2[2]
    bool operator==(const Uniform&) const = default;
  };
  struct Parameter {  // a #define selected by tuning (kiln/kernel_parameters.hpp)
    std::string name;
    std::vector<std::string> texts;  // candidates; the first is the default
    bool operator==(const Parameter&) const = default;
  };
  std::string path;                   // for messages only, not part of the computation
  std::vector<std::string> includes;  // for messages only: [i] is the name of source string i + 1 in #line directives
  std::string text;
  Dialect dialect = Dialect::invalid;  // glsl or opencl_c
  std::string entry = "main";          // opencl_c: kernel name, or "main" for the only kernel
  std::vector<Define> constants;
  std::vector<Binding> bindings;
  std::vector<Uniform> uniforms;
  std::array<std::uint32_t, 3> grid{1, 1, 1};       // workgroups, without a binding of kind grid
  std::array<std::uint32_t, 3> workgroup{0, 0, 0};  // lanes; zeros: declared in the text
  std::vector<Parameter> parameters;
  // If not empty, defines `grid`: integers, constants and parameters, + - * / % and parentheses.
  std::array<std::string, 3> grid_expressions;

  bool operator==(const UserKernelSpec&) const = default;
};

std::uint64_t values_in(const UserKernelSpec::Uniform& uniform) noexcept;  // product of its shape; 1 for a scalar
inline bool has_tensor(BindingKind kind) noexcept {  // false: local memory, or a sampler without a texture
  return kind != BindingKind::local && kind != BindingKind::sampler_state;
}

using LayerSpec = std::variant<Conv2dSpec, GemmSpec, Pool2dSpec, AddSpec, SoftmaxSpec, ActivationSpec>;

// Several layers as one program. The program chooses the memory layout of the tensors between the layers. Steps run in
// order. At most one step writes a tensor.
struct ChainSpec {
  struct Tensor {
    Shape shape;                            // fp32
    TensorRole role = TensorRole::invalid;  // input, output, constant; invalid: only inside the chain
    bool operator==(const Tensor&) const = default;
  };
  struct Step {
    LayerSpec layer;
    std::vector<std::uint32_t> tensors;  // one for each operand of the layer
    bool operator==(const Step&) const = default;
  };
  std::vector<Tensor> tensors;
  std::vector<Step> steps;
  bool operator==(const ChainSpec&) const = default;
};

using KernelSpec =
    std::variant<Conv2dSpec, GemmSpec, UserKernelSpec, Pool2dSpec, AddSpec, SoftmaxSpec, ActivationSpec, ChainSpec>;
KernelSpec kernel_spec_of(const LayerSpec& layer);

// invalid_argument: the error names the field with the expected and the found value.
Status validate(const KernelSpec& spec);

std::string_view operation(const KernelSpec& spec) noexcept;  // "conv2d", "gemm", "kernel", …
// Floating-point operations of the direct algorithm (a multiply-add counts two); 0 for a user kernel.
double flops(const KernelSpec& spec) noexcept;
// Minimum of bytes to read and write; for a user kernel, the size of its bindings.
double bytes_moved(const KernelSpec& spec);
// One line that defines the computation: "conv2d n=1 c=3 …". Equal texts mean equal results.
std::string canonical_text(const KernelSpec& spec);

struct TensorDecl {
  std::string name;
  TensorRole role = TensorRole::invalid;
  std::uint64_t bytes = 0;
  bool operator==(const TensorDecl&) const = default;
};

// Returns the tensors of a spec in the order of a request:
// conv2d: input, weights, [bias], output; gemm: a, b, [bias], c; pool2d, softmax, activation: input, output; add: a, b,
// output; chain: its inputs, constants and outputs; kernel: bindings that have a tensor, [uniforms].
std::vector<TensorDecl> tensors_of(const KernelSpec& spec);

// The code of one pass. Equal spec, device and variant give equal bytes. All members except `files` and `spec` are part of
// the program's key.
struct KernelSource {
  Dialect dialect = Dialect::invalid;
  std::string text;
  std::string entry = "main";  // opencl_c: kernel name, or "main" for the only kernel
  std::vector<Define> constants;
  std::vector<Access> bindings;                     // one per binding, in order
  std::vector<View> views;                          // one per binding; empty: all are storage
  std::array<std::uint32_t, 3> workgroup{0, 0, 0};  // lanes; zeros: declared in the text
  std::vector<std::string> files;  // for messages: [i] is the name of source string i in #line; [0] is the name of `text`
  std::optional<KernelSpec> spec;  // library only: what to compute; text is canonical_text(*spec)
};

// constant: a Constant of the plan, not of the request.
enum class BindingSource : std::uint8_t { invalid = 0, tensor, scratch, prepared, constant };

struct Binding {
  BindingSource source = BindingSource::invalid;
  std::uint32_t index = 0;  // into the plan's tensors, scratch, prepared or constants
};

// A grid of three uint32 that the device reads from a buffer when the pass begins. If a count is 0, the pass runs nothing.
struct IndirectGrid {
  std::uint32_t binding = 0;  // index into the pass's bindings
  std::uint64_t offset = 0;   // bytes; a multiple of 4
  bool operator==(const IndirectGrid&) const = default;
};

struct Pass {
  KernelSource source;
  std::vector<Binding> bindings;               // as many as source.bindings
  std::array<std::uint32_t, 3> grid{1, 1, 1};  // workgroups; a launch parameter, not part of the program
  std::optional<IndirectGrid> indirect{};      // instead of `grid`
};

struct ScratchDecl {  // exists for one job; initially undefined
  std::string name;
  std::uint64_t bytes = 0;
};

struct PreparedDecl {        // a packed form of one Constant, cached per (digest, layout, device)
  std::uint32_t tensor = 0;  // index of a tensor with role constant
  std::string layout;        // name of the packing; part of the key of the packed form
  std::uint64_t bytes = 0;
};

struct KernelPlan {
  std::string variant;  // "direct/plain": family and variant
  std::vector<TensorDecl> tensors;
  std::vector<ScratchDecl> scratch;
  std::vector<PreparedDecl> prepared;
  // Parameters of this shape for a generic program. Read-only; not part of any program's key.
  std::vector<std::shared_ptr<const Constant>> constants;
  std::vector<Pass> prepare;  // prepare[i] fills prepared[i]; binds only its constant, that packed form and `constants`
  std::vector<Pass> passes;   // in order; each sees the writes of earlier passes
  // Notes for the report of each run, one sentence each. Not part of any key.
  std::vector<std::string> notes;
};

// Checks index ranges, access against role and view, equal length of prepare and prepared, and positive grids.
Status validate(const KernelPlan& plan);

}  // namespace kiln
