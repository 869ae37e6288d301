// The table of operations, and the specs of pool2d, add, softmax, activation and chain.
#include <kiln/digest.hpp>
#include <kiln/operation.hpp>

#include <catch2/catch.hpp>

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace kiln;
using Catch::Matchers::Contains;

namespace {

Pool2dSpec pool() {
  Pool2dSpec spec;
  spec.n = 2, spec.c = 4, spec.h = 9, spec.w = 11, spec.r = 3, spec.s = 2;
  return spec;
}

AddSpec sum() {
  AddSpec spec;
  spec.shape = {2, 3, 5};
  return spec;
}

SoftmaxSpec rows() {
  SoftmaxSpec spec;
  spec.shape = {4, 10};
  return spec;
}

ActivationSpec rectifier() {
  ActivationSpec spec;
  spec.shape = {7};
  return spec;
}

// x → max pooling → + x of the same size → y
ChainSpec chain() {
  Pool2dSpec same = pool();
  same.n = 1, same.r = same.s = 3, same.pad_y = same.pad_x = 1;
  AddSpec add;
  add.shape = {1, 4, 9, 11};
  ChainSpec spec;
  const Shape shape{1, 4, 9, 11};
  spec.tensors = {{shape, TensorRole::input}, {shape, TensorRole::invalid}, {shape, TensorRole::output}};
  spec.steps = {{same, {0, 1}}, {add, {1, 0, 2}}};
  return spec;
}

template <class Spec>
void check_refused(Spec spec, const std::function<void(Spec&)>& change, const std::string& words,
                   StatusCode code = StatusCode::invalid_argument) {
  REQUIRE(validate(KernelSpec(spec)).text() == "ok");
  change(spec);
  const Status status = validate(KernelSpec(spec));
  CHECK(status.code == code);
  CHECK_THAT(status.message, Contains(words));
}

}  // namespace

TEST_CASE("operations: the table has one entry for each spec, found by spec and by name", "[contract]") {
  const std::vector<std::pair<KernelSpec, std::string>> specs = {
      {Conv2dSpec{}, "conv2d"}, {GemmSpec{}, "gemm"},       {UserKernelSpec{}, "kernel"},     {Pool2dSpec{}, "pool2d"},
      {AddSpec{}, "add"},       {SoftmaxSpec{}, "softmax"}, {ActivationSpec{}, "activation"}, {ChainSpec{}, "chain"}};
  CHECK(operations().size() == specs.size());
  for (const auto& [spec, name] : specs) {
    INFO(name);
    CHECK(operation_of(spec).name == name);
    CHECK(operation(spec) == name);
    CHECK(operation_named(name) == &operation_of(spec));
    CHECK(operation_of(spec).is_layer == (name != "kernel" && name != "chain"));
  }
  CHECK(operation_named("conv3d") == nullptr);
}

TEST_CASE("operations: operands, shape and family of layers", "[contract]") {
  Conv2dSpec conv;
  conv.n = 2, conv.c = 4, conv.h = 9, conv.w = 11, conv.k = 8, conv.r = 3, conv.s = 2;
  conv.stride_y = 2, conv.groups = 2, conv.bias = Bias::per_channel, conv.activation = Activation::relu;
  const std::vector<Operand> operands = operation_of(conv).operands(conv);
  REQUIRE(operands.size() == 4);
  CHECK(operands[0].shape == Shape{2, 4, 9, 11});
  CHECK(operands[1].shape == Shape{8, 2, 3, 2});
  CHECK(operands[2].name == "bias");
  CHECK(operands[2].bytes == 32);
  CHECK(operands[3].role == TensorRole::output);
  CHECK(operands[3].shape == Shape{2, 8, 4, 10});
  CHECK(operation_of(conv).shape(conv) == "2x4x9x11 k8 3x2 stride 2x1 groups 2 relu");
  CHECK(operation_of(conv).family(conv) == "3x2 grouped direct f32");
  CHECK(operation_of(conv).saving(conv) == 1);
  conv.pad_y = 1, conv.stride_y = 1, conv.activation = Activation::none;
  CHECK(operation_of(conv).saving(conv) == Approx(27.0 / 25));  // two of 27 row taps lie outside
  Pool2dSpec pool;                                              // windows of 128 x 128 around one pixel
  pool.h = pool.w = 1, pool.r = pool.s = 128, pool.pad_y = pool.pad_x = 127;
  CHECK(operation_of(pool).saving(pool) == Approx(128.0 * 128 * 128 * 128 / (128 * 128)));
  GemmSpec gemm{5, 6, 7};
  CHECK(operation_of(gemm).operands(gemm)[1].shape == Shape{7, 6});
  CHECK(operation_of(gemm).shape(gemm) == "m5 n6 k7");
  CHECK(operation_of(gemm).family(gemm) == "thin f32");
}

TEST_CASE("operations: a kernel's operands are its bindings that are not local, and its uniforms", "[contract]") {
  UserKernelSpec kernel;
  kernel.path = "folder/saxpy.comp", kernel.grid = {4, 2, 1};
  kernel.bindings = {{Access::read, 64}, {Access::read_write, 32, BindingKind::local}, {Access::write, 128}};
  kernel.bindings[0].shape = {16};
  kernel.uniforms = {{"gain", UserKernelSpec::Uniform::Type::number, {3}}};
  const std::vector<Operand> operands = operation_of(kernel).operands(kernel);
  REQUIRE(operands.size() == 3);
  CHECK(operands[0].shape == Shape{16});
  CHECK(operands[1].name == "bindings[2]");
  CHECK(operands[1].role == TensorRole::inout);
  CHECK(operands[2].bytes == 24);
  CHECK(operation_of(kernel).shape(kernel) == "saxpy.comp grid 4x2x1");
}

TEST_CASE("pool2d spec: sizes, tensors, cost and text", "[contract]") {
  Pool2dSpec spec = pool();
  CHECK(spec.out_h() == 7);
  CHECK(spec.out_w() == 10);
  spec.stride_y = 2, spec.stride_x = 3, spec.pad_y = 1, spec.pad_x = 1;
  CHECK(spec.out_h() == 5);
  CHECK(spec.out_w() == 4);
  CHECK(canonical_text(spec) ==
        "pool2d n=2 c=4 h=9 w=11 r=3 s=2 stride_y=2 stride_x=3 pad_y=1 pad_x=1 dtype=f32 layout=nchw pool=max");
  CHECK(operation_of(spec).shape(spec) == "2x4x9x11 max 3x2 stride 2x3 pad 1");
  CHECK(flops(spec) == 2 * 4 * 5 * 4 * 3 * 2);
  CHECK(tensors_of(spec) == std::vector<TensorDecl>{{"input", TensorRole::input, 2 * 4 * 9 * 11 * 4},
                                                    {"output", TensorRole::output, 2 * 4 * 5 * 4 * 4}});
  spec.kind = PoolKind::average;
  CHECK_THAT(canonical_text(spec), Contains("pool=average"));
}

TEST_CASE("pool2d spec: what is wrong is named", "[contract]") {
  using Spec = Pool2dSpec;
  check_refused<Spec>(
      pool(), [](Spec& s) { s.c = 0; }, "c = 0: expected 1 to");
  check_refused<Spec>(
      pool(), [](Spec& s) { s.r = 0; }, "r = 0");
  check_refused<Spec>(
      pool(), [](Spec& s) { s.stride_x = 0; }, "stride (x) = 0");
  check_refused<Spec>(
      pool(), [](Spec& s) { s.pad_y = 3; }, "pad (y) = 3: expected 0 to 2");
  check_refused<Spec>(
      pool(), [](Spec& s) { s.r = 10; }, "r = 10: larger than the padded input height 9");
  check_refused<Spec>(
      pool(), [](Spec& s) { s.s = 14, s.pad_x = 1; }, "s = 14: larger than the padded input width 13");
  check_refused<Spec>(
      pool(), [](Spec& s) { s.kind = PoolKind::invalid; }, "expected max or average");
  check_refused<Spec>(
      pool(), [](Spec& s) { s.dtype = DType::f16; }, "expected f32", StatusCode::unsupported);
}

TEST_CASE("pool2d spec: every size has a least and a greatest value", "[contract]") {
  constexpr std::int64_t most = 1048576;
  const std::pair<std::string, std::int64_t Pool2dSpec::*> fields[] = {{"n", &Pool2dSpec::n},
                                                                       {"c", &Pool2dSpec::c},
                                                                       {"h", &Pool2dSpec::h},
                                                                       {"w", &Pool2dSpec::w},
                                                                       {"r", &Pool2dSpec::r},
                                                                       {"s", &Pool2dSpec::s},
                                                                       {"stride (y)", &Pool2dSpec::stride_y},
                                                                       {"stride (x)", &Pool2dSpec::stride_x}};
  for (const auto& [name, field] : fields) {
    INFO(name);
    Pool2dSpec spec = pool();
    spec.r = spec.s = 1;
    if (name == "r") spec.h = most;
    if (name == "s") spec.w = most;
    for (const std::int64_t value : {std::int64_t{1}, most}) {
      spec.*field = value;
      CHECK(validate(spec).text() == "ok");
    }
    for (const std::int64_t value : {std::int64_t{0}, most + 1}) {
      spec.*field = value;
      CHECK(validate(spec).text() ==
            "invalid_argument: pool2d: " + name + " = " + std::to_string(value) + ": expected 1 to 1048576");
    }
  }
  for (const std::int64_t window : {1, 2, 5}) {
    INFO("window " << window);
    Pool2dSpec spec = pool();
    spec.r = spec.s = window;
    spec.pad_y = spec.pad_x = window - 1;
    CHECK(validate(spec).text() == "ok");
    const std::string expected = ": expected 0 to " + std::to_string(window - 1);
    for (const std::int64_t pad : {std::int64_t{-1}, window}) {
      Pool2dSpec high = spec, wide = spec;
      high.pad_y = pad;
      wide.pad_x = pad;
      CHECK(validate(high).text() == "invalid_argument: pool2d: pad (y) = " + std::to_string(pad) + expected);
      CHECK(validate(wide).text() == "invalid_argument: pool2d: pad (x) = " + std::to_string(pad) + expected);
    }
  }
}

TEST_CASE("pool2d spec: the window is at most as large as the padded input", "[contract]") {
  struct Axis {
    std::int64_t Pool2dSpec::*extent;
    std::int64_t Pool2dSpec::*pad;
    std::int64_t Pool2dSpec::*window;
    std::string name, side;
  };
  const Axis axes[] = {{&Pool2dSpec::h, &Pool2dSpec::pad_y, &Pool2dSpec::r, "r", "height"},
                       {&Pool2dSpec::w, &Pool2dSpec::pad_x, &Pool2dSpec::s, "s", "width"}};
  struct Sizes {
    std::int64_t extent, pad;
    std::int64_t most;  // of the window
  };
  const Sizes sizes[] = {{1, 0, 1}, {4, 0, 4}, {1, 1, 3}, {1, 3, 7}, {3, 2, 7}, {4, 1, 6}, {10, 4, 18}};
  for (const Axis& axis : axes) {
    for (const Sizes& size : sizes) {
      INFO(axis.side << " " << size.extent << " padded by " << size.pad);
      Pool2dSpec spec = pool();
      spec.*axis.extent = size.extent;
      spec.*axis.pad = size.pad;
      spec.*axis.window = size.most;
      CHECK(validate(spec).text() == "ok");
      CHECK((axis.name == "r" ? spec.out_h() : spec.out_w()) == 1);
      spec.*axis.window = size.most + 1;
      CHECK(validate(spec).text() == "invalid_argument: pool2d: " + axis.name + " = " + std::to_string(size.most + 1) +
                                         ": larger than the padded input " + axis.side + " " +
                                         std::to_string(size.most));
      CHECK((axis.name == "r" ? spec.out_h() : spec.out_w()) == 0);
    }
  }
}

TEST_CASE("add, softmax and activation specs: tensors, cost and text", "[contract]") {
  AddSpec add = sum();
  add.activation = Activation::relu6;
  CHECK(canonical_text(add) == "add shape=2x3x5 dtype=f32 activation=relu6");
  CHECK(flops(add) == 30);
  CHECK(tensors_of(add).size() == 3);
  CHECK(operation_of(add).operands(add)[1].shape == Shape{2, 3, 5});
  CHECK(canonical_text(rows()) == "softmax shape=4x10 dtype=f32");
  CHECK(flops(rows()) == 160);
  CHECK(canonical_text(rectifier()) == "activation shape=7 dtype=f32 activation=relu");
  CHECK(tensors_of(rectifier())[1] == TensorDecl{"output", TensorRole::output, 28});
  CHECK(shape_of(Extents{3, 4, 0, 0}) == Shape{3, 4});
}

TEST_CASE("add, softmax and activation specs: what is wrong is named", "[contract]") {
  check_refused<AddSpec>(
      sum(), [](AddSpec& s) { s.shape = {}; }, "expected one to four dimensions");
  check_refused<AddSpec>(
      sum(),
      [](AddSpec& s) {
        s.shape = {2, 0, 5};
      },
      "then only zeros");
  check_refused<AddSpec>(
      sum(), [](AddSpec& s) { s.shape[1] = -1; }, "shape[1] = -1");
  check_refused<AddSpec>(
      sum(), [](AddSpec& s) { s.activation = Activation::invalid; }, "none, relu or relu6");
  check_refused<SoftmaxSpec>(
      rows(), [](SoftmaxSpec& s) { s.shape[0] = 1 << 21; }, "shape[0] = 2097152");
  check_refused<ActivationSpec>(
      rectifier(), [](ActivationSpec& s) { s.activation = Activation::none; }, "expected relu or relu6");
}

TEST_CASE("chain spec: tensors, cost and text", "[contract]") {
  const ChainSpec spec = chain();
  REQUIRE(validate(KernelSpec(spec)).text() == "ok");
  CHECK(flops(spec) == 4 * 99 * 9 + 4 * 99);
  const std::vector<TensorDecl> tensors = tensors_of(spec);
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[0].role == TensorRole::input);
  CHECK(tensors[1] == TensorDecl{"tensor 2", TensorRole::output, 4 * 99 * 4});
  std::set<std::string> texts{canonical_text(spec)};
  ChainSpec other = chain();
  other.steps[1].tensors = {0, 1, 2};
  texts.insert(canonical_text(other));
  other = chain();
  std::get<AddSpec>(other.steps[1].layer).activation = Activation::relu;
  texts.insert(canonical_text(other));
  other = chain();
  other.tensors[1].role = TensorRole::output;
  texts.insert(canonical_text(other));
  CHECK(texts.size() == 4);
}

TEST_CASE("chain spec: what does not fit together is named", "[contract]") {
  using Spec = ChainSpec;
  check_refused<Spec>(
      chain(), [](Spec& s) { s.steps.clear(); }, "no steps");
  check_refused<Spec>(
      chain(), [](Spec& s) { s.steps[0].tensors = {0}; }, "step 0: found 1 tensors, expected 2");
  check_refused<Spec>(
      chain(), [](Spec& s) { s.steps[1].tensors[0] = 9; }, "step 1: a: tensor 9, expected an index below 3");
  check_refused<Spec>(
      chain(),
      [](Spec& s) {
        s.tensors[1].shape = {1, 4, 9, 12};
      },
      "step 0: output: tensor 1 is [1, 4, 9, 12], expected [1, 4, 9, 11]");
  check_refused<Spec>(
      chain(), [](Spec& s) { std::swap(s.steps[0], s.steps[1]); }, "read before it is written");
  check_refused<Spec>(
      chain(), [](Spec& s) { s.steps[1].tensors[2] = 1; }, "tensor 1 is already written");
  check_refused<Spec>(
      chain(), [](Spec& s) { s.tensors[0].role = TensorRole::constant; }, "tensor 0 is a constant");
  check_refused<Spec>(
      chain(),
      [](Spec& s) {
        s.tensors.push_back({{4}, TensorRole::invalid});
      },
      "tensor 3: no step writes it");
  check_refused<Spec>(
      chain(), [](Spec& s) { std::get<AddSpec>(s.steps[1].layer).shape = {}; }, "step 1: add");
}

TEST_CASE("chain spec: the role of each tensor is that of its operand", "[contract]") {
  check_refused<ChainSpec>(
      chain(), [](ChainSpec& s) { s.tensors[2].role = TensorRole::inout; },
      "chain: tensor 2: is both input and output, expected one of them");
  check_refused<ChainSpec>(
      chain(), [](ChainSpec& s) { s.steps[1].tensors[2] = 0; }, "step 1: output: tensor 0 is already written");
  GemmSpec gemm;
  gemm.m = 1, gemm.n = 2, gemm.k = 3;
  ChainSpec product;
  product.tensors = {{{1, 3}, TensorRole::input}, {{3, 2}, TensorRole::constant}, {{1, 2}, TensorRole::output}};
  product.steps = {{gemm, {0, 1, 2}}};
  check_refused<ChainSpec>(
      product, [](ChainSpec& s) { s.tensors[1].role = TensorRole::input; }, "tensor 1 is not a constant");
  check_refused<ChainSpec>(
      product, [](ChainSpec& s) { s.tensors[0].role = TensorRole::constant; }, "tensor 0 is a constant");
  check_refused<ChainSpec>(
      product, [](ChainSpec& s) { s.steps[0].tensors[2] = 3; }, "tensor 3, expected an index below 3");
  const std::string shape = operation_of(product).shape(product);
  CHECK_THAT(shape, Catch::Matchers::StartsWith("1 layers "));
  CHECK(shape.size() == std::string("1 layers ").size() + 8);
  CHECK(operation_of(product).family(product).size() == 32);
  CHECK(operation_of(product).family(product) != operation_of(chain()).family(chain()));
}

TEST_CASE("conv2d spec: groups divide both numbers of channels, and either accuracy is known", "[contract]") {
  Conv2dSpec conv;
  conv.n = 1, conv.c = 4, conv.h = conv.w = 3, conv.k = 4, conv.r = conv.s = 3, conv.groups = 2;
  check_refused<Conv2dSpec>(
      conv, [](Conv2dSpec& s) { s.k = 5; }, "groups = 2: expected a divisor of c = 4 and of k = 5");
  check_refused<Conv2dSpec>(
      conv, [](Conv2dSpec& s) { s.c = 5; }, "groups = 2: expected a divisor of c = 5 and of k = 4");
  check_refused<Conv2dSpec>(
      conv, [](Conv2dSpec& s) { s.accuracy = Accuracy::invalid; }, "bias, activation and accuracy must be set");
  conv.accuracy = Accuracy::winograd;
  CHECK(validate(KernelSpec(conv)).text() == "ok");
  Pool2dSpec average = pool();
  average.kind = PoolKind::average;
  CHECK(validate(KernelSpec(average)).text() == "ok");
}

TEST_CASE("operations: a kernel is named by its file or its entry, and a grid that is read has no size", "[contract]") {
  UserKernelSpec kernel;
  kernel.text = "x";
  kernel.entry = "start";
  kernel.grid = {7, 8, 9};
  CHECK(operation_of(kernel).shape(kernel) == "start grid 7x8x9");
  kernel.path = "deep/blur.comp";
  CHECK(operation_of(kernel).shape(kernel) == "blur.comp grid 7x8x9");
  kernel.bindings = {{Access::read, 12, BindingKind::grid}};
  CHECK(operation_of(kernel).shape(kernel) == "blur.comp grid read");
  CHECK(operation_of(kernel).family(kernel).size() == 32);
}

TEST_CASE("operations: everything of a texture that changes the result changes a kernel's text", "[contract]") {
  UserKernelSpec::Binding image{Access::read, 16, BindingKind::image, DType::f32, {2, 2}, "photo"};
  const std::vector<std::function<void(UserKernelSpec::Binding&)>> changes = {
      [](auto&) {},
      [](auto& b) { b.picture = true; },
      [](auto& b) { b.shown = true; },
      [](auto& b) { b.picture = b.shown = true; },
      [](auto& b) { b.filter = TextureFilter::linear; },
      [](auto& b) { b.wrap = TextureWrap::repeat; },
      [](auto& b) { b.format = ImageFormat::r32f; },
      [](auto& b) { b.dtype = DType::i32; },
      [](auto& b) { b.shape = {4}; },
      [](auto& b) { b.name = "other"; },
      [](auto& b) { b.number = 1; },
      [](auto& b) { b.access = Access::read_write; },
      [](auto& b) { b.kind = BindingKind::sampler; },
      [](auto& b) { b.kind = BindingKind::sampler_state; },
      [](auto& b) { b.kind = BindingKind::sampler_state, b.filter = TextureFilter::linear; },
      [](auto& b) { b.kind = BindingKind::sampler_state, b.wrap = TextureWrap::repeat; },
      [](auto& b) { b.kind = BindingKind::buffer; },
      [](auto& b) { b.kind = BindingKind::buffer, b.access = Access::write; },
      [](auto& b) { b.kind = BindingKind::buffer, b.access = Access::read_write; },
      [](auto& b) { b.kind = BindingKind::value; },
      [](auto& b) { b.kind = BindingKind::local; },
      [](auto& b) { b.kind = BindingKind::grid; },
      [](auto& b) { b.kind = BindingKind::grid, b.first = 1; },
  };
  std::set<std::string> texts;
  for (const auto& change : changes) {
    UserKernelSpec kernel;
    kernel.text = "x";
    kernel.bindings = {image};
    change(kernel.bindings[0]);
    texts.insert(canonical_text(KernelSpec(kernel)));
  }
  CHECK(texts.size() == changes.size());
}

TEST_CASE("operations: the text of a kernel has every field, with digests of the job's own texts", "[contract]") {
  const auto digest = [](std::string_view text) { return sha256(text).hex(); };
  UserKernelSpec spec;
  spec.text = "source", spec.dialect = Dialect::glsl, spec.entry = "start", spec.constants = {{"A", "1"}};
  UserKernelSpec::Binding image{Access::read_write, 24, BindingKind::image, DType::u8, {2, 3, 4}, "photo"};
  image.format = ImageFormat::rgba8, image.filter = TextureFilter::nearest, image.wrap = TextureWrap::repeat;
  image.picture = image.shown = true;
  UserKernelSpec::Binding sampler{Access::read, 0, BindingKind::sampler_state};
  sampler.name = "s", sampler.filter = TextureFilter::linear, sampler.wrap = TextureWrap::border;
  UserKernelSpec::Binding numbers{Access::write, 8}, grid{Access::read, 20, BindingKind::grid};
  numbers.number = 5, grid.first = 2;
  spec.bindings = {image, sampler, numbers, grid};
  spec.uniforms = {{"u", UserKernelSpec::Uniform::Type::number, {2, 3}}};
  spec.grid = {2, 3, 4}, spec.workgroup = {8, 4, 1};
  spec.parameters = {{"P", {"1", "2"}}};
  spec.grid_expressions[1] = "P+1";
  const std::string begin = "kernel dialect=glsl source=" + digest("source") + " entry=start A=" + digest("1") + " ";
  const std::string texels = "=24 block=" + digest("photo") + " texels=u8 shape=" + digest("[2, 3, 4]") +
                             " format=rgba8 filter=nearest wrap=repeat";
  const std::string others =
      " local=0 block=" + digest("s") +
      " filter=linear wrap=border output=8 binding=5 grid_from=20 first=2 uniform=" + digest("u") +
      " extent=2 extent=3";
  const std::string end =
      " grid=2 grid=3 grid=4 try:P=" + digest("1") + " try:P=" + digest("2") + " grid[1]=" + digest("P+1");
  CHECK(canonical_text(spec) == begin + "written_image" + texels + " picture=1 shown=1" + others +
                                    " workgroup=8 workgroup=4 workgroup=1" + end);
  spec.workgroup = {0, 0, 0};
  spec.bindings[0].access = Access::read, spec.bindings[0].picture = spec.bindings[0].shown = false;
  CHECK(canonical_text(spec) == begin + "image" + texels + others + end);
  spec.bindings[0].kind = BindingKind::sampler;
  CHECK(canonical_text(spec) == begin + "sampler" + texels + others + end);
  UserKernelSpec arguments;
  arguments.text = "source", arguments.dialect = Dialect::opencl_c;
  arguments.bindings = {{Access::read, 4, BindingKind::value},
                        {Access::read_write, 64, BindingKind::local},
                        {Access::read, 8},
                        {Access::read_write, 12}};
  CHECK(canonical_text(arguments) == "kernel dialect=opencl_c source=" + digest("source") +
                                         " entry=main value=4 local=64 input=8 inout=12 grid=1 grid=1 grid=1");
}

TEST_CASE("operations: a specification that lost its operation has none, and costs nothing", "[contract]") {
  struct Thrower {
    operator UserKernelSpec() const { throw 1; }
  };
  KernelSpec spec;
  try {
    spec.emplace<UserKernelSpec>(Thrower{});
  } catch (int) {
  }
  REQUIRE(spec.valueless_by_exception());
  CHECK(validate(spec).text() == "invalid_argument: the specification has no operation");
  CHECK(operation(spec) == "invalid");
  CHECK(canonical_text(spec) == "invalid");
  CHECK(flops(spec) == 0);
  CHECK(bytes_moved(spec) == 0);
  CHECK(tensors_of(spec).empty());
}
