#include <kiln/kernel.hpp>

#include <catch2/catch.hpp>

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace kiln;
using Catch::Contains;

namespace {

Conv2dSpec conv() {
  Conv2dSpec spec;
  spec.n = 2, spec.c = 4, spec.h = 9, spec.w = 11;
  spec.k = 8, spec.r = 3, spec.s = 3;
  return spec;
}

UserKernelSpec kernel() {
  UserKernelSpec spec;
  spec.path = "saxpy.comp";
  spec.text = "void main() {}";
  spec.dialect = Dialect::glsl;
  spec.constants = {{"A", "2.5"}};
  spec.bindings = {{Access::read, 64}, {Access::read_write, 128}};
  spec.grid = {4, 1, 1};
  return spec;
}

template <class Spec>
void check_refused(Spec spec, const std::function<void(Spec&)>& change, const std::vector<std::string>& words,
                   StatusCode code = StatusCode::invalid_argument) {
  REQUIRE(validate(KernelSpec(spec)).ok());
  change(spec);
  const Status status = validate(KernelSpec(spec));
  INFO(status.text());
  CHECK(status.code == code);
  for (const std::string& word : words) CHECK_THAT(status.message, Catch::Contains(word));
}

// Each change must give another text.
template <class Spec>
void check_distinct(const Spec& spec, const std::vector<std::function<void(Spec&)>>& changes) {
  std::set<std::string> texts{canonical_text(spec)};
  for (const auto& change : changes) {
    Spec changed = spec;
    change(changed);
    texts.insert(canonical_text(changed));
  }
  CHECK(texts.size() == changes.size() + 1);
}

}  // namespace

TEST_CASE("conv2d spec: output sizes by the usual formula", "[contract]") {
  Conv2dSpec spec = conv();
  CHECK(spec.out_h() == 7);
  CHECK(spec.out_w() == 9);
  spec.pad_y = spec.pad_x = 1;
  spec.stride_y = 2, spec.stride_x = 3;
  CHECK(spec.out_h() == 5);
  CHECK(spec.out_w() == 4);
  spec.dilation_y = spec.dilation_x = 2;
  CHECK(spec.out_h() == 4);
  CHECK(spec.out_w() == 3);
}

TEST_CASE("conv2d spec: a wrong field is named with its value and what was expected", "[contract]") {
  using Spec = Conv2dSpec;
  check_refused<Spec>(conv(), [](Spec& s) { s.n = 0; }, {"conv2d", "n = 0", "expected 1 to"});
  check_refused<Spec>(conv(), [](Spec& s) { s.c = -3; }, {"c = -3"});
  check_refused<Spec>(conv(), [](Spec& s) { s.h = 0; }, {"h = 0"});
  check_refused<Spec>(conv(), [](Spec& s) { s.w = std::int64_t{1} << 40; }, {"w = 1099511627776", "1048576"});
  check_refused<Spec>(conv(), [](Spec& s) { s.k = 0; }, {"k = 0"});
  check_refused<Spec>(conv(), [](Spec& s) { s.r = 0; }, {"r = 0"});
  check_refused<Spec>(conv(), [](Spec& s) { s.s = 0; }, {"s = 0"});
  check_refused<Spec>(conv(), [](Spec& s) { s.stride_y = 0; }, {"stride (y) = 0"});
  check_refused<Spec>(conv(), [](Spec& s) { s.stride_x = 0; }, {"stride (x) = 0"});
  check_refused<Spec>(conv(), [](Spec& s) { s.pad_y = -1; }, {"pad (y) = -1", "expected 0 to"});
  check_refused<Spec>(conv(), [](Spec& s) { s.pad_x = -1; }, {"pad (x) = -1"});
  check_refused<Spec>(conv(), [](Spec& s) { s.dilation_y = 0; }, {"dilation (y) = 0"});
  check_refused<Spec>(conv(), [](Spec& s) { s.dilation_x = 0; }, {"dilation (x) = 0"});
  check_refused<Spec>(conv(), [](Spec& s) { s.groups = 3; }, {"groups = 3", "c = 4", "k = 8"});
  check_refused<Spec>(conv(), [](Spec& s) { s.groups = 8; }, {"groups = 8", "c = 4"});
  check_refused<Spec>(conv(), [](Spec& s) { s.r = 10; }, {"kernel height 10", "input height 9"});
  check_refused<Spec>(conv(), [](Spec& s) { s.dilation_x = 6; }, {"kernel width 13", "input width 11"});
  check_refused<Spec>(conv(), [](Spec& s) { s.n = s.c = s.k = 1 << 20; }, {"input [1048576, 1048576, 9, 11]", "2^36"});
  check_refused<Spec>(conv(), [](Spec& s) { s.bias = Bias::invalid; }, {"bias"});
  check_refused<Spec>(conv(), [](Spec& s) { s.activation = Activation::invalid; }, {"activation"});
  check_refused<Spec>(conv(), [](Spec& s) { s.accuracy = Accuracy::invalid; }, {"accuracy"});
  check_refused<Spec>(
      conv(), [](Spec& s) { s.dtype = DType::f64; }, {"f64", "expected f32"}, StatusCode::unsupported);
}

TEST_CASE("conv2d spec: the kernel with its dilation is at most as large as the padded input", "[contract]") {
  struct Axis {
    std::int64_t Conv2dSpec::*extent;
    std::int64_t Conv2dSpec::*pad;
    std::int64_t Conv2dSpec::*taps;
    std::int64_t Conv2dSpec::*dilation;
    std::string name, tap;
  };
  const Axis axes[] = {{&Conv2dSpec::h, &Conv2dSpec::pad_y, &Conv2dSpec::r, &Conv2dSpec::dilation_y, "height", "r"},
                       {&Conv2dSpec::w, &Conv2dSpec::pad_x, &Conv2dSpec::s, &Conv2dSpec::dilation_x, "width", "s"}};
  struct Sizes {
    std::int64_t extent, pad;  // seven together
    std::int64_t taps, dilation;
    std::int64_t reach;
  };
  const Sizes sizes[] = {{3, 2, 7, 1, 7}, {3, 2, 4, 2, 7}, {3, 2, 3, 3, 7}, {1, 3, 2, 6, 7}, {7, 0, 7, 1, 7},
                         {3, 2, 8, 1, 8}, {3, 2, 3, 4, 9}, {1, 3, 2, 7, 8}, {1, 3, 5, 2, 9}, {7, 0, 8, 1, 8}};
  for (const Axis& axis : axes) {
    for (const Sizes& size : sizes) {
      INFO(axis.name << ": " << size.extent << " padded by " << size.pad << ", " << size.taps << " taps, dilation "
                     << size.dilation);
      Conv2dSpec spec = conv();
      spec.*axis.extent = size.extent;
      spec.*axis.pad = size.pad;
      spec.*axis.taps = size.taps;
      spec.*axis.dilation = size.dilation;
      const std::string refused = "invalid_argument: conv2d: kernel " + axis.name + " " + std::to_string(size.reach) +
                                  " (" + axis.tap + " with dilation): larger than the padded input " + axis.name + " 7";
      CHECK(validate(spec).text() == (size.reach <= 7 ? "ok" : refused));
      if (size.reach == 7) CHECK((axis.tap == "r" ? spec.out_h() : spec.out_w()) == 1);
    }
  }
}

TEST_CASE("gemm spec: a wrong field is named with its value and what was expected", "[contract]") {
  using Spec = GemmSpec;
  const Spec good{3, 4, 5};
  check_refused<Spec>(good, [](Spec& s) { s.m = 0; }, {"gemm", "m = 0", "expected 1 to"});
  check_refused<Spec>(good, [](Spec& s) { s.n = -1; }, {"n = -1"});
  check_refused<Spec>(good, [](Spec& s) { s.k = 2 << 20; }, {"k = 2097152"});
  check_refused<Spec>(good, [](Spec& s) { s.m = s.k = 1 << 20; }, {"a [1048576, 1048576]", "2^36"});
  check_refused<Spec>(good, [](Spec& s) { s.bias = Bias::invalid; }, {"bias"});
  check_refused<Spec>(
      good, [](Spec& s) { s.dtype = DType::i32; }, {"i32"}, StatusCode::unsupported);
}

TEST_CASE("user kernel spec: a wrong field is named with the file", "[contract]") {
  using Spec = UserKernelSpec;
  check_refused<Spec>(kernel(), [](Spec& s) { s.text.clear(); }, {"saxpy.comp", "source is empty"});
  check_refused<Spec>(kernel(), [](Spec& s) { s.dialect = Dialect::library; },
                      {"dialect library", "glsl, opencl_c or code_object"});
  check_refused<Spec>(kernel(), [](Spec& s) { s.grid[1] = 0; }, {"grid[1] = 0"});
  check_refused<Spec>(kernel(), [](Spec& s) { s.bindings[1].access = Access::invalid; },
                      {"bindings[1]", "input, output or inout"});
  check_refused<Spec>(kernel(), [](Spec& s) { s.bindings[0].bytes = 0; }, {"bindings[0]", "empty"});
  check_refused<Spec>(kernel(), [](Spec& s) { s.constants = {{"A", "1"}, {"2B", "1"}}; }, {"constants[1]", "'2B'"});
  check_refused<Spec>(kernel(), [](Spec& s) { s.constants = {{"A B", "1"}}; }, {"constants[0]", "'A B'"});
  check_refused<Spec>(kernel(),
                      [](Spec& s) {
                        s.constants = {{"A", "1\n#define B 2"}};
                      },
                      {"constants[0] A", "one line"});
  check_refused<Spec>(kernel(), [](Spec& s) { s.constants = {{"A", "1\\"}}; }, {"constants[0] A", "backslash"});
  check_refused<Spec>(kernel(),
                      [](Spec& s) {
                        s.constants = {{"A", "1"}, {"A", "2"}};
                      },
                      {"constants[1]", "A is defined twice"});
}

TEST_CASE("user kernel spec: kind, access and name of a binding must fit the dialect", "[contract]") {
  using Kind = BindingKind;
  const std::string wrong = "invalid_argument: kernel saxpy.comp: ", other = "unsupported: kernel saxpy.comp: ";
  const std::string no_argument =
      ", which only an OpenCL C kernel takes as an argument. Use uniforms or shared variables";
  const std::string no_access = ": access is not set, expected input, output or inout";
  const std::string by_value = "bindings[0]: is passed by value and cannot be written";
  const std::string read_image = ": is an image, expected input", any_image = read_image + ", output or inout";
  const std::string no_image = ": is an image, which OpenCL C kernels do not support";
  const std::string no_sampler = ": is a sampler, which OpenCL C kernels do not support";
  const std::string named = "bindings[0] (name = \"A\")";
  const std::string no_name =
      ": has a name or a binding number, but an OpenCL C kernel's arguments have only positions";
  struct Case {
    Kind kind;
    Access access;
    std::string name;
    std::string glsl, opencl;  // what validate() says
  };
  const Case cases[] = {
      {Kind::buffer, Access::read, "", "ok", "ok"},
      {Kind::buffer, Access::write, "", "ok", "ok"},
      {Kind::buffer, Access::read_write, "", "ok", "ok"},
      {Kind::buffer, Access::read, "A", "ok", wrong + named + no_name},
      {Kind::buffer, Access::invalid, "", wrong + "bindings[0]" + no_access, wrong + "bindings[0]" + no_access},
      {Kind::value, Access::read, "", wrong + "bindings[0]: is a number" + no_argument, "ok"},
      {Kind::value, Access::write, "", wrong + "bindings[0]: is a number" + no_argument, wrong + by_value},
      {Kind::value, Access::read_write, "", wrong + "bindings[0]: is a number" + no_argument, wrong + by_value},
      {Kind::value, Access::read, "A", wrong + named + ": is a number" + no_argument, wrong + named + no_name},
      {Kind::local, Access::read_write, "", wrong + "bindings[0]: is local memory" + no_argument, "ok"},
      {Kind::local, Access::read_write, "A", wrong + named + ": is local memory" + no_argument,
       wrong + named + no_name},
      {Kind::image, Access::read, "A", "ok", other + "images.A" + no_image},
      {Kind::image, Access::write, "A", "ok", other + "images.A" + no_image},
      {Kind::image, Access::read_write, "A", "ok", other + "images.A" + no_image},
      {Kind::image, Access::invalid, "A", wrong + "images.A" + any_image, other + "images.A" + no_image},
      {Kind::image, Access::read, "", wrong + "bindings[0]: is an image without a name", other + "images." + no_image},
      {Kind::sampler, Access::read, "A", "ok", other + "samplers.A" + no_image},
      {Kind::sampler, Access::write, "A", wrong + "samplers.A" + read_image, other + "samplers.A" + no_image},
      {Kind::sampler, Access::read_write, "A", wrong + "samplers.A" + read_image, other + "samplers.A" + no_image},
      {Kind::sampler, Access::invalid, "A", wrong + "samplers.A" + read_image, other + "samplers.A" + no_image},
      {Kind::sampler, Access::read, "", wrong + "bindings[0]: is an image without a name",
       other + "samplers." + no_image},
      {Kind::sampler_state, Access::read, "A", "ok", other + "samplers.A" + no_sampler},
      {Kind::sampler_state, Access::read, "", wrong + "bindings[0]: is a sampler without a name",
       other + "samplers." + no_sampler},
      {Kind::invalid, Access::read, "", wrong + "bindings[0]: has no kind", wrong + "bindings[0]: has no kind"},
  };
  for (const Case& each : cases) {
    INFO("kind " << static_cast<int>(each.kind) << ", access " << static_cast<int>(each.access) << ", name '"
                 << each.name << "'");
    UserKernelSpec spec = kernel();
    spec.bindings = {{each.access, 64, each.kind}};
    spec.bindings[0].name = each.name;
    CHECK(validate(spec).text() == each.glsl);
    spec.dialect = Dialect::code_object;
    CHECK(validate(spec).text() == each.glsl);
    spec.dialect = Dialect::opencl_c;
    CHECK(validate(spec).text() == each.opencl);
  }
  UserKernelSpec numbered = kernel();
  numbered.bindings[1].number = 0;
  numbered.bindings[0].number = 1;
  CHECK(validate(numbered).text() == "ok");
  numbered.dialect = Dialect::opencl_c;
  CHECK(validate(numbered).text() == wrong + "bindings[0] (binding = 1)" + no_name);
}

TEST_CASE("user kernel spec: only a sampler without a texture has no bytes", "[contract]") {
  const std::pair<BindingKind, std::string> kinds[] = {{BindingKind::buffer, "bindings[0] (name = \"A\")"},
                                                       {BindingKind::image, "images.A"},
                                                       {BindingKind::sampler, "samplers.A"},
                                                       {BindingKind::sampler_state, ""}};
  for (const auto& [kind, place] : kinds) {
    INFO("kind " << static_cast<int>(kind));
    UserKernelSpec spec = kernel();
    spec.bindings = {{Access::read, 1, kind}};
    spec.bindings[0].name = "A";
    CHECK(validate(spec).text() == "ok");
    spec.bindings[0].bytes = 0;
    CHECK(validate(spec).text() ==
          (place.empty() ? "ok" : "invalid_argument: kernel saxpy.comp: " + place + ": is empty"));
  }
}

TEST_CASE("user kernel spec: equal names and numbers are refused at every pair of positions", "[contract]") {
  constexpr std::uint32_t count = 5;
  const std::string wrong = "invalid_argument: kernel saxpy.comp: ";
  UserKernelSpec by_position = kernel();
  by_position.constants.clear();
  by_position.bindings.assign(count, {Access::read, 64});
  UserKernelSpec by_name = by_position, by_number = by_position;
  for (std::uint32_t i = 0; i < count; ++i) {
    by_name.constants.push_back({"C" + std::to_string(i), "1"});
    by_name.bindings[i].name = "B" + std::to_string(i);
    by_name.uniforms.push_back({"U" + std::to_string(i), UserKernelSpec::Uniform::Type::number, {}});
    by_number.bindings[i].number = 20 - i;
  }
  REQUIRE(validate(by_position).text() == "ok");
  REQUIRE(validate(by_name).text() == "ok");
  REQUIRE(validate(by_number).text() == "ok");
  const auto place = [](std::uint32_t position) { return "bindings[" + std::to_string(position) + "]"; };
  for (std::uint32_t second = 1; second < count; ++second) {
    for (std::uint32_t first = 0; first < second; ++first) {
      INFO("positions " << first << " and " << second);
      UserKernelSpec spec = by_name;
      spec.bindings[first].name = spec.bindings[second].name = "Same";
      CHECK(validate(spec).text() == wrong + place(second) + " (name = \"Same\"): 'Same' is already provided by " +
                                         place(first) + " (name = \"Same\")");
      spec = by_name;
      spec.bindings[first].kind = BindingKind::image;
      spec.bindings[first].name = spec.bindings[second].name = "Same";
      CHECK(validate(spec).text() ==
            wrong + place(second) + " (name = \"Same\"): 'Same' is already provided by images.Same");
      spec = by_name;
      spec.constants[first].name = spec.constants[second].name = "SAME";
      CHECK(validate(spec).text() == wrong + "constants[" + std::to_string(second) +
                                         "]: SAME is defined twice, first by constants[" + std::to_string(first) + "]");
      spec = by_name;
      spec.uniforms[first].name = spec.uniforms[second].name = "same";
      CHECK(validate(spec).text() == wrong + "uniform 'same': is given twice");
      spec = by_number;
      spec.bindings[first].number = spec.bindings[second].number = 7;
      CHECK(validate(spec).text() ==
            wrong + place(second) + " (binding = 7): binding number 7 is already provided by " + place(first));
      // A binding without a name and a number has its position as the number.
      spec = by_position;
      spec.bindings[second].number = first;
      CHECK(validate(spec).text() == wrong + place(second) + " (binding = " + std::to_string(first) +
                                         "): binding number " + std::to_string(first) + " is already provided by " +
                                         place(first));
      spec.bindings[first].name = "Named";  // and then takes no number
      CHECK(validate(spec).text() == "ok");
      spec = by_position;
      spec.bindings[first].number = second;
      CHECK(validate(spec).text() == wrong + place(second) + ": binding number " + std::to_string(second) +
                                         " is already provided by " + place(first));
    }
  }
  // A grid takes no number. What follows it is compared all the same.
  UserKernelSpec behind_grid = by_position;
  behind_grid.bindings[0] = {Access::read, 12, BindingKind::grid, DType::u32};
  behind_grid.bindings[2].number = 0;
  CHECK(validate(behind_grid).text() == "ok");
  behind_grid.bindings[4].number = 0;
  CHECK(validate(behind_grid).text() ==
        wrong + "bindings[4] (binding = 0): binding number 0 is already provided by bindings[2]");
}

TEST_CASE("user kernel spec: a wrong uniform is named with what was expected", "[contract]") {
  using Type = UserKernelSpec::Uniform::Type;
  const std::string gain = "invalid_argument: kernel saxpy.comp: uniform 'gain': ";
  const std::string most = " values, expected at most 8 dimensions and 1 to 65536 values";
  struct Case {
    UserKernelSpec::Uniform uniform;
    std::string text;
  };
  const Case cases[] = {
      {{"gain", Type::boolean, {}}, "ok"},
      {{"gain", Type::integer, {65536}}, "ok"},
      {{"gain", Type::number, {256, 256}}, "ok"},
      {{"gain", Type::number, {1, 1, 1, 1, 1, 1, 1, 4}}, "ok"},
      {{"gain", Type::number, {65537}}, gain + "has 1 dimensions and 65537" + most},
      {{"gain", Type::number, {256, 257}}, gain + "has 2 dimensions and 65792" + most},
      {{"gain", Type::number, {3, 0}}, gain + "has 2 dimensions and 0" + most},
      {{"gain", Type::number, {1, 1, 1, 1, 1, 1, 1, 1, 1}}, gain + "has 9 dimensions and 1" + most},
      {{"gain", Type::invalid, {}}, gain + "has no type"},
      {{"gain", static_cast<Type>(4), {}}, gain + "has no type"},
      {{"", Type::number, {}}, "invalid_argument: kernel saxpy.comp: uniform '': has no name"},
  };
  for (const Case& each : cases) {
    INFO(each.text);
    UserKernelSpec spec = kernel();
    spec.uniforms = {each.uniform};
    CHECK(validate(spec).text() == each.text);
    spec.dialect = Dialect::code_object;
    CHECK(validate(spec).text() == each.text);
    spec.dialect = Dialect::opencl_c;
    CHECK(validate(spec).text() == "invalid_argument: kernel saxpy.comp: uniform '" + each.uniform.name +
                                       "': OpenCL C has no uniforms. Pass the value as a binding");
  }
}

TEST_CASE("spec: FLOPs count a multiply-add as two", "[contract]") {
  CHECK(flops(conv()) == 2.0 * 2 * 8 * 7 * 9 * 4 * 3 * 3);
  Conv2dSpec grouped = conv();
  grouped.groups = 4;
  CHECK(flops(grouped) == flops(conv()) / 4);
  CHECK(flops(GemmSpec{3, 4, 5}) == 120);
  CHECK(flops(kernel()) == 0);
}

TEST_CASE("spec: tensors stand in the order of requests, with role and size", "[contract]") {
  Conv2dSpec spec = conv();
  spec.groups = 2;
  CHECK(tensors_of(spec) == std::vector<TensorDecl>{{"input", TensorRole::input, 2 * 4 * 9 * 11 * 4},
                                                    {"weights", TensorRole::constant, 8 * 2 * 3 * 3 * 4},
                                                    {"output", TensorRole::output, 2 * 8 * 7 * 9 * 4}});
  spec.bias = Bias::per_channel;
  REQUIRE(tensors_of(spec).size() == 4);
  CHECK(tensors_of(spec)[2] == TensorDecl{"bias", TensorRole::constant, 8 * 4});
  const GemmSpec gemm{3, 4, 5, DType::f32, Bias::per_channel};
  CHECK(tensors_of(gemm) == std::vector<TensorDecl>{{"a", TensorRole::input, 60},
                                                    {"b", TensorRole::constant, 80},
                                                    {"bias", TensorRole::constant, 16},
                                                    {"c", TensorRole::output, 48}});
  CHECK(tensors_of(kernel()) ==
        std::vector<TensorDecl>{{"bindings[0]", TensorRole::input, 64}, {"bindings[1]", TensorRole::inout, 128}});
  CHECK(bytes_moved(gemm) == 60 + 80 + 16 + 48);
  CHECK(bytes_moved(kernel()) == 64 + 2 * 128);  // inout is read and written
}

TEST_CASE("spec: a grid is read from one input of three uint32 that no program sees", "[contract]") {
  UserKernelSpec spec = kernel();
  spec.dialect = Dialect::glsl;
  spec.bindings = {{Access::read_write, 64}};
  UserKernelSpec::Binding grid{Access::read, 16, BindingKind::grid, DType::u32};
  grid.first = 1;
  spec.bindings.push_back(grid);
  REQUIRE(validate(spec).text() == "ok");
  CHECK(tensors_of(spec).size() == 2);
  const auto refused = [&spec](auto change) {
    UserKernelSpec changed = spec;
    change(changed.bindings[1]);
    return validate(changed).text();
  };
  using Grid = UserKernelSpec::Binding;
  CHECK_THAT(refused([](Grid& g) { g.first = 2; }), Contains("begins at element 2 of 4, expected three elements"));
  CHECK_THAT(refused([](Grid& g) { g.first = ~std::uint64_t{0}; }), Contains("of 4, expected three elements"));
  CHECK_THAT(refused([](Grid& g) { g.bytes = 8, g.first = 0; }), Contains("element 0 of 2"));
  CHECK_THAT(refused([](Grid& g) { g.access = Access::read_write; }), Contains("is written, expected an input"));
  CHECK_THAT(refused([](Grid& g) { g.dtype = DType::f32; }), Contains("is float32, expected uint32"));
  CHECK_THAT(refused([](Grid& g) { g.name = "Counts"; }), Contains("not a resource of the program"));
  CHECK_THAT(refused([](Grid& g) { g.number = 1; }), Contains("not a resource of the program"));
  UserKernelSpec two = spec;
  two.bindings.push_back(grid);
  CHECK_THAT(validate(two).text(), Contains("found more than one grid"));
  UserKernelSpec numbers = spec, elsewhere = spec;
  numbers.bindings.pop_back();
  elsewhere.bindings[1].first = 0;
  CHECK(canonical_text(numbers) != canonical_text(spec));
  CHECK(canonical_text(elsewhere) != canonical_text(spec));
}

TEST_CASE("spec: canonical text is what the documentation shows", "[contract]") {
  CHECK(canonical_text(conv()) ==
        "conv2d n=2 c=4 h=9 w=11 k=8 r=3 s=3 stride_y=1 stride_x=1 pad_y=0 pad_x=0 dilation_y=1 dilation_x=1 groups=1 "
        "dtype=f32 layout=nchw bias=0 activation=none accuracy=direct");
  CHECK(canonical_text(GemmSpec{3, 4, 5}) == "gemm m=3 n=4 k=5 dtype=f32 bias=0 activation=none");
}

TEST_CASE("spec: what changes the result changes the canonical text", "[contract]") {
  check_distinct<Conv2dSpec>(
      conv(), {[](auto& s) { s.n = 3; }, [](auto& s) { s.c = 8; }, [](auto& s) { s.h = 10; }, [](auto& s) { s.w = 12; },
               [](auto& s) { s.k = 4; }, [](auto& s) { s.r = 1; }, [](auto& s) { s.s = 1; },
               [](auto& s) { s.stride_y = 2; }, [](auto& s) { s.stride_x = 2; }, [](auto& s) { s.pad_y = 1; },
               [](auto& s) { s.pad_x = 1; }, [](auto& s) { s.dilation_y = 2; }, [](auto& s) { s.dilation_x = 2; },
               [](auto& s) { s.groups = 2; }, [](auto& s) { s.bias = Bias::per_channel; },
               [](auto& s) { s.activation = Activation::relu; }, [](auto& s) { s.accuracy = Accuracy::winograd; }});
  check_distinct<GemmSpec>(
      {3, 4, 5}, {[](auto& s) { s.m = 4; }, [](auto& s) { s.n = 5; }, [](auto& s) { s.k = 6; },
                  [](auto& s) { s.bias = Bias::per_channel; }, [](auto& s) { s.activation = Activation::relu; }});
  check_distinct<UserKernelSpec>(
      kernel(), {[](auto& s) { s.text += " "; }, [](auto& s) { s.dialect = Dialect::opencl_c; },
                 [](auto& s) { s.entry = "other"; }, [](auto& s) { s.constants[0].text = "3"; },
                 [](auto& s) { s.constants[0].name = "B"; }, [](auto& s) { s.bindings[0].access = Access::read_write; },
                 [](auto& s) { s.bindings[0].bytes = 32; }, [](auto& s) { s.grid[2] = 2; }});
}

TEST_CASE("spec: a kernel's path is a label, not part of the text", "[contract]") {
  UserKernelSpec moved = kernel();
  moved.path = "elsewhere.comp";
  CHECK(canonical_text(moved) == canonical_text(kernel()));
}

TEST_CASE("spec: a kernel's texts cannot pass for other fields", "[contract]") {
  UserKernelSpec one = kernel(), other = kernel();
  one.constants = {{"A", "1 B=2"}};
  other.constants = {{"A", "1"}, {"B", "2"}};
  CHECK(canonical_text(one) != canonical_text(other));
}
