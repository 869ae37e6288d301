// The public functions of values answer for every value that a field can hold: zero, negative, the extremes, numbers
// that no enumerator has.
#include <kiln/kernel.hpp>
#include <kiln/kernel_parameters.hpp>
#include <kiln/program_interface.hpp>
#include <kiln/regular_file.hpp>
#include <kiln/tensor.hpp>

#include "../data/scratch_folder.hpp"
#include "support/test_length.hpp"

#include <catch2/catch.hpp>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

namespace kiln::test {
namespace {

constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t numbers[] = {
    0,        -1,       1,    2,         3,         7,    64, 1 << 20, (1 << 20) + 1, std::int64_t{1} << 32,
    most / 2, most - 1, most, least / 2, least + 1, least};

constexpr std::int64_t Conv2dSpec::*conv_fields[] = {
    &Conv2dSpec::n,     &Conv2dSpec::c,     &Conv2dSpec::h,          &Conv2dSpec::w,         &Conv2dSpec::k,
    &Conv2dSpec::r,     &Conv2dSpec::s,     &Conv2dSpec::groups,     &Conv2dSpec::stride_y,  &Conv2dSpec::stride_x,
    &Conv2dSpec::pad_y, &Conv2dSpec::pad_x, &Conv2dSpec::dilation_y, &Conv2dSpec::dilation_x};
constexpr std::int64_t GemmSpec::*gemm_fields[] = {&GemmSpec::m, &GemmSpec::n, &GemmSpec::k};

Conv2dSpec good_conv() {
  Conv2dSpec spec;
  spec.c = 4, spec.h = 6, spec.w = 6, spec.k = 4, spec.r = 3, spec.s = 3;
  return spec;
}

// Calls every function of a spec. What is invalid is an invalid_argument, or unsupported.
void call_all(const KernelSpec& spec) {
  const Status status = validate(spec);
  const double operations = flops(spec);
  CHECK((operations >= 0 && !std::isnan(operations)));
  const double bytes = bytes_moved(spec);
  CHECK((bytes >= 0 && !std::isnan(bytes)));
  CHECK_FALSE(canonical_text(spec).empty());
  CHECK_FALSE(operation(spec).empty());
  for (const TensorDecl& tensor : tensors_of(spec)) {
    CHECK_FALSE(tensor.name.empty());
    if (status.ok()) CHECK(tensor.bytes > 0);
  }
  if (!status.ok()) {
    CHECK((status.code == StatusCode::invalid_argument || status.code == StatusCode::unsupported));
    CHECK_FALSE(status.message.empty());
  }
}

TEST_CASE("hostile values: each field of a convolution and of a product", "[contract]") {
  for (const auto field : conv_fields) {
    for (const std::int64_t number : numbers) {
      Conv2dSpec spec = good_conv();
      spec.*field = number;
      call_all(spec);
    }
  }
  for (const auto field : gemm_fields) {
    for (const std::int64_t number : numbers) {
      GemmSpec spec{4, 4, 4};
      spec.*field = number;
      call_all(spec);
    }
  }
  constexpr std::int64_t Pool2dSpec::*pool_fields[] = {
      &Pool2dSpec::n, &Pool2dSpec::c,        &Pool2dSpec::h,     &Pool2dSpec::w,     &Pool2dSpec::r,
      &Pool2dSpec::s, &Pool2dSpec::stride_y, &Pool2dSpec::pad_y, &Pool2dSpec::pad_x, &Pool2dSpec::stride_x};
  for (const std::int64_t number : numbers) {
    for (const auto field : pool_fields) {
      Pool2dSpec spec;
      spec.c = 4, spec.h = 6, spec.w = 6, spec.r = 3, spec.s = 3;
      spec.*field = number;
      call_all(spec);
    }
    for (std::size_t at = 0; at < 4; ++at) {
      Extents shape{2, 3, 4, 5};
      shape[at] = number;
      call_all(AddSpec{shape});
      call_all(SoftmaxSpec{shape});
      call_all(ActivationSpec{shape});
      ChainSpec chain;
      chain.tensors = {{Shape(shape.begin(), shape.end()), TensorRole::input}, {{2, 3, 4, 5}, TensorRole::output}};
      chain.steps = {{ActivationSpec{{2, 3, 4, 5}}, {0, 1}}};
      call_all(chain);
    }
  }
  call_all(Pool2dSpec{});
  call_all(ChainSpec{});
  call_all(Conv2dSpec{});
  call_all(GemmSpec{});
  call_all(UserKernelSpec{});
}

TEST_CASE("hostile values: a stride, a dilation or groups of zero give no operations", "[contract]") {
  for (const auto field : {&Conv2dSpec::stride_x, &Conv2dSpec::stride_y, &Conv2dSpec::groups, &Conv2dSpec::dilation_x,
                           &Conv2dSpec::dilation_y, &Conv2dSpec::k}) {
    for (const std::int64_t number : {std::int64_t{0}, std::int64_t{-1}, least}) {
      Conv2dSpec spec = good_conv();
      spec.*field = number;
      CHECK(flops(spec) == 0);
      CHECK(validate(spec).code == StatusCode::invalid_argument);
    }
  }
  Conv2dSpec wide = good_conv();
  CHECK(wide.out_h() == 4);
  wide.pad_y = most, wide.stride_x = 0;
  CHECK(wide.out_h() == 0);
  CHECK(wide.out_w() == 0);
  wide = good_conv();
  wide.h = 2;
  CHECK(wide.out_h() == 0);  // the kernel is larger than the input
}

TEST_CASE("hostile values: random fields", "[contract]") {
  std::mt19937_64 random(22);
  const auto any = [&] {
    return random() % 4 == 0 ? static_cast<std::int64_t>(random()) : numbers[random() % std::size(numbers)];
  };
  const int rounds = is_long() ? 1'000'000 : 20'000;
  for (int round = 0; round < rounds; ++round) {
    Conv2dSpec conv = good_conv();
    for (const auto field : conv_fields) {
      if (random() % 3 == 0) conv.*field = any();
    }
    conv.bias = static_cast<Bias>(random() % 5);
    conv.activation = static_cast<Activation>(random() % 5);
    conv.accuracy = static_cast<Accuracy>(random() % 256);
    conv.dtype = static_cast<DType>(random() % 256);
    call_all(conv);
    call_all(GemmSpec{any(), any(), any(), static_cast<DType>(random() % 8), static_cast<Bias>(random() % 256)});
  }
}

TEST_CASE("hostile values: random kernels of a user", "[contract]") {
  std::mt19937_64 random(23);
  const std::string words[] = {"", "x", "gain", "a[0]", "1x", "TILE", "x y", std::string("\0n", 2), "\x1b]0;"};
  const auto word = [&] { return words[random() % std::size(words)]; };
  const auto extent = [&] {
    constexpr std::uint32_t extents[] = {0, 1, 2, 3, 4, 65536, 0x80000000u, 0xffffffffu};
    return extents[random() % std::size(extents)];
  };
  const auto shape = [&] {
    std::vector<std::uint32_t> made(random() % 5);
    for (auto& each : made) each = extent();
    return made;
  };
  const std::string expressions[] = {"",
                                     "1",
                                     "0",
                                     "-1",
                                     "TILE",
                                     "1/0",
                                     "1%0",
                                     "9223372036854775807+1",
                                     "(((",
                                     "TILE*TILE",
                                     "-9223372036854775807/-1",
                                     "4294967296"};
  const int rounds = is_long() ? 200'000 : 4'000;
  for (int round = 0; round < rounds; ++round) {
    UserKernelSpec kernel;
    kernel.path = word(), kernel.entry = word();
    kernel.text = random() % 8 == 0 ? "" : "void main() {}";
    kernel.dialect = static_cast<Dialect>(random() % 7);
    for (std::uint64_t i = random() % 4; i > 0; --i) {
      kernel.bindings.push_back({static_cast<Access>(random() % 5),
                                 random() % 3 == 0 ? random() : random() % 65,
                                 static_cast<BindingKind>(random() % 8),
                                 static_cast<DType>(random() % 9),
                                 {static_cast<std::int64_t>(random()), 2},
                                 word(),
                                 extent()});
    }
    for (std::uint64_t i = random() % 3; i > 0; --i) {
      kernel.uniforms.push_back({word(), static_cast<UserKernelSpec::Uniform::Type>(random() % 6), shape()});
    }
    for (std::uint64_t i = random() % 3; i > 0; --i) kernel.constants.push_back({word(), word()});
    for (std::uint64_t i = random() % 3; i > 0; --i) {
      kernel.parameters.push_back({word(), std::vector<std::string>(random() % 4, word())});
    }
    for (auto& each : kernel.grid) each = extent();
    for (auto& each : kernel.workgroup) each = extent();
    for (auto& each : kernel.grid_expressions) each = expressions[random() % std::size(expressions)];
    call_all(kernel);
    CHECK(check_parameters(kernel).message.size() < 10'000);
    static_cast<void>(settled(kernel, "user:TILE=1"));
    static_cast<void>(settled(kernel, word()));

    ProgramInterface declared;
    for (std::uint64_t i = random() % 4; i > 0; --i) {
      ProgramResource resource;
      resource.kind = static_cast<ResourceKind>(random() % 12);
      resource.name = word(), resource.type = word(), resource.number = extent();
      resource.access = static_cast<Access>(random() % 5);
      resource.element = static_cast<ElementType>(random() % 20);
      resource.shape = shape();
      resource.matrix = random() % 2 == 0;
      resource.has_default = random() % 2 == 0;
      resource.bytes = random() % 3 == 0 ? random() : random() % 65;
      resource.array_offset = random() % 3 == 0 ? random() : random() % 65;
      resource.array_stride = random() % 3 == 0 ? random() : random() % 17;
      resource.element_bytes = random() % 17;
      resource.struct_elements = random() % 2 == 0;
      resource.open_ended = random() % 2 == 0;
      (random() % 4 == 0 ? declared.unused : declared.resources).push_back(resource);
    }
    const auto provided = provide(declared, kernel);
    if (provided) CHECK(provided->size() == declared.resources.size());
  }
}

TEST_CASE("hostile values: tensors", "[contract]") {
  constexpr std::size_t most_filled = std::size_t{1} << 30;  // create() writes zeros to all of it
  alignas(64) std::byte memory[64] = {};
  for (const std::int64_t number : numbers) {
    for (const Shape& shape : {Shape{number}, Shape{number, 0}, Shape{0, number}, Shape{number, number, number}}) {
      CAPTURE(to_string(shape));
      const auto borrowed = HostTensor::borrow(DType::f32, shape, memory, {});
      if (borrowed) {
        const double elements = std::accumulate(shape.begin(), shape.end(), 1.0, std::multiplies<>());
        CHECK(static_cast<double>((*borrowed)->elements()) == elements);
        CHECK(static_cast<double>((*borrowed)->bytes().size()) == elements * sizeof(float));
        if ((*borrowed)->bytes().size() > most_filled) continue;
      } else {
        CHECK_FALSE(borrowed.error().message.empty());
      }
      const auto tensor = HostTensor::create(DType::f32, shape);
      CHECK(tensor.has_value() == borrowed.has_value());
      if (!tensor) CHECK_FALSE(tensor.error().message.empty());
    }
  }
  CHECK_FALSE(HostTensor::create(static_cast<DType>(200), {1}));
  CHECK(Constant::create(nullptr) == nullptr);
}

TEST_CASE("hostile values: only regular files of a bounded size are read, and nothing waits", "[contract]") {
  const ScratchFolder folder;
  write_contents(folder / "file", "12345");
  std::filesystem::create_symlink("file", folder / "link");
  std::filesystem::create_symlink("loop", folder / "loop");
  std::filesystem::create_directory(folder / "folder");
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  write_contents(folder / "empty", "");
  write_contents(folder / "huge", "");
  std::filesystem::resize_file(folder / "huge", std::uintmax_t{1} << 40);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (folder / "socket").c_str(), sizeof address.sun_path - 1);
  REQUIRE(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  ::close(socket);

  CHECK(*read_whole_file(folder / "file", 5) == "12345");
  CHECK(*read_whole_file(folder / "link", 5) == "12345");
  CHECK(read_whole_file(folder / "empty", 0)->empty());
  const auto why = [&](const char* name, SymbolicLink link = SymbolicLink::follow) {
    return read_whole_file(folder / name, 4, link).error();
  };
  CHECK(why("none").code == StatusCode::not_found);
  CHECK_THAT(why("file").message, Catch::EndsWith("/file: has 5 bytes, expected at most 4"));
  CHECK_THAT(why("huge").message, Catch::EndsWith("1099511627776 bytes, expected at most 4"));
  CHECK_THAT(why("folder").message, Catch::EndsWith("not a regular file (expected a file, found a folder)"));
  CHECK_THAT(why("fifo").message, Catch::EndsWith("not a regular file (expected a file, found a FIFO)"));
  CHECK_THAT(why("socket").message, Catch::Contains("not a regular file (expected a file, found a socket"));
  CHECK_THAT(why("link", SymbolicLink::refuse).message, Catch::Contains("found a symbolic link"));
  CHECK(why("loop").code == StatusCode::io);
  CHECK_THAT(read_whole_file("/dev/zero", 4).error().message, Catch::Contains("found a device"));
  const auto file = RegularFile::open(folder / "file");
  REQUIRE(file);
  CHECK(file->digest_of_first(5)->hex() == sha256("12345").hex());
  CHECK(file->digest_of_first(6).error().code == StatusCode::corrupt);
  std::filesystem::resize_file(folder / "file", 2);
  CHECK(*file->text(5) == "12");
}

}  // namespace
}  // namespace kiln::test
