#include "data/tensor_source.hpp"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include <kiln/data.hpp>
#include <kiln/regular_file.hpp>

#include "data/npy.hpp"
#include "data/png.hpp"

namespace kiln::data {
namespace {

std::uint64_t mix(std::uint64_t bits) noexcept {
  bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ bits >> 27) * 0x94D049BB133111EBu;
  return bits ^ bits >> 31;
}

template <class T, class Convert>
void fill(std::span<T> to, std::uint64_t seed, Convert convert) {
  std::uint64_t state = mix(seed);
  for (T& element : to) element = convert(mix(state += 0x9E3779B97F4A7C15u));
}

}  // namespace

void fill_random(HostTensor& tensor, std::uint64_t seed) {
  switch (tensor.dtype()) {
    case DType::f32:
      fill(tensor.as<float>(), seed,
           [](std::uint64_t bits) { return static_cast<float>(bits >> 40) * 0x1p-23f - 1.0f; });
      break;
    case DType::f64:
      fill(tensor.as<double>(), seed,
           [](std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-52 - 1.0; });
      break;
    case DType::i32:
      fill(tensor.as<std::int32_t>(), seed, [](std::uint64_t bits) { return static_cast<std::int32_t>(bits >> 32); });
      break;
    case DType::u32:
      fill(tensor.as<std::uint32_t>(), seed, [](std::uint64_t bits) { return static_cast<std::uint32_t>(bits >> 32); });
      break;
    case DType::u8:
      fill(tensor.as<std::uint8_t>(), seed, [](std::uint64_t bits) { return static_cast<std::uint8_t>(bits >> 56); });
      break;
    case DType::i8:
      fill(tensor.as<std::int8_t>(), seed, [](std::uint64_t bits) { return static_cast<std::int8_t>(bits >> 56); });
      break;
    case DType::i16:
      fill(tensor.as<std::int16_t>(), seed, [](std::uint64_t bits) { return static_cast<std::int16_t>(bits >> 48); });
      break;
    case DType::u16:
      fill(tensor.as<std::uint16_t>(), seed, [](std::uint64_t bits) { return static_cast<std::uint16_t>(bits >> 48); });
      break;
    case DType::i64:
      fill(tensor.as<std::int64_t>(), seed, [](std::uint64_t bits) { return static_cast<std::int64_t>(bits); });
      break;
    case DType::u64:
      fill(tensor.as<std::uint64_t>(), seed, [](std::uint64_t bits) { return bits; });
      break;
    case DType::f16:
      fill(tensor.as<std::uint16_t>(), seed,
           [](std::uint64_t bits) { return to_half(static_cast<double>(bits >> 53) * 0x1p-10 - 1.0); });
      break;
    case DType::boolean:
      fill(tensor.as<std::uint8_t>(), seed, [](std::uint64_t bits) { return static_cast<std::uint8_t>(bits >> 63); });
      break;
    case DType::invalid:
      break;  // no HostTensor is made with it
  }
}

namespace {

std::optional<Result<std::uint64_t>> parse_seed(std::string_view source, std::string_view scheme) {
  if (!source.starts_with(scheme)) return std::nullopt;
  const std::string_view digits = source.substr(scheme.size());
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seed);
  if (error == std::errc() && end == digits.data() + digits.size()) return Result<std::uint64_t>(seed);
  return Result<std::uint64_t>(invalid_argument("found \"" + std::string(source) + "\", expected " +
                                                std::string(scheme) + "SEED with SEED from 0 to 18446744073709551615"));
}

}  // namespace

std::optional<Result<std::uint64_t>> parse_random(std::string_view source) { return parse_seed(source, "random:"); }
std::optional<Result<std::uint64_t>> parse_he(std::string_view source) { return parse_seed(source, "he:"); }

Status fill_he(HostTensor& tensor, std::uint64_t seed) {
  const Shape& shape = tensor.shape();
  if (tensor.dtype() != DType::f32 || (shape.size() != 4 && shape.size() != 2)) {
    return invalid_argument("found \"he:" + std::to_string(seed) + "\" for " + std::string(numpy_name(tensor.dtype())) +
                            " " + to_string(shape) + ", expected weights: float32 with two or four dimensions");
  }
  const std::int64_t products = shape.size() == 4 ? shape[1] * shape[2] * shape[3] : shape[0];
  const float most = static_cast<float>(std::sqrt(6.0 / static_cast<double>(products)));
  fill_random(tensor, seed);
  for (float& element : tensor.as<float>()) element *= most;
  return {};
}

namespace {

enum class FileKind : std::uint8_t { invalid = 0, npy, png, bytes };

constexpr std::string_view zeros = "zeros:", of_memory = "memory:";

FileKind kind_of(const std::filesystem::path& path) {
  std::string extension = path.extension().string();
  for (char& letter : extension) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  if (extension == ".npy") return FileKind::npy;
  if (extension == ".png") return FileKind::png;
  return extension == ".bin" || extension == ".raw" ? FileKind::bytes : FileKind::invalid;
}

Status unknown_source(std::string_view source, std::string_view role) {
  return invalid_argument(std::string(role) + ": found \"" + std::string(source) +
                          "\", expected random:SEED, he:SEED, zeros:, or a file .npy, .png, .bin or .raw");
}

// Of a source without a form of its own.
Result<TensorForm> wanted_form(std::string_view source, const TensorRequest& request) {
  if (request.shape.empty()) {
    return invalid_argument(std::string(request.role) + ": found \"" + std::string(source) +
                            "\" without a shape, expected shape = [N, …]");
  }
  return TensorForm{request.dtype == DType::invalid ? DType::f32 : request.dtype, request.shape};
}

// random:SEED and zeros:; nullopt: a file.
std::optional<Result<TensorForm>> generated_form(std::string_view source, const TensorRequest& request) {
  for (const auto& seed : {parse_random(source), parse_he(source)}) {
    if (seed && !*seed) return seed->error().within(request.role);
  }
  if (is_file(source)) return std::nullopt;
  return wanted_form(source, request);
}

Status mismatch(const std::filesystem::path& path, const TensorRequest& request, const std::string& found,
                const std::string& wanted) {
  return invalid_argument(std::string(request.role) + ": file " + path.string() + ": " + found + ", expected " +
                          wanted);
}

// What is wrong with the sides of an image; empty: nothing.
std::string other_sides(const Shape& shape, const TensorRequest& request) {
  const std::size_t sides = request.sides.size();
  const bool fits = sides == 0 || ((shape.size() == sides || shape.size() == sides + 1) &&
                                   std::equal(request.sides.begin(), request.sides.end(), shape.begin()));
  return fits ? std::string() : "shape " + to_string(shape);
}

// A tensor of the application.
Result<std::shared_ptr<HostTensor>> named_tensor(std::string_view name, const TensorRequest& request) {
  const std::string who = std::string(request.role) + ": found \"memory:" + std::string(name) + "\"";
  if (request.memory == nullptr) {
    return invalid_argument(who + ", which only an application can use, expected random:SEED, zeros: or a file");
  }
  const auto found = request.memory->tensors.find(name);
  if (found == request.memory->tensors.end()) {
    return not_found(who + ", but the application provides no tensor of this name");
  }
  const HostTensor& tensor = *found->second;
  if (const std::string other = other_sides(tensor.shape(), request); !other.empty()) {
    return invalid_argument(who + ": " + other + ", expected " + to_string(request.sides) + " from size");
  }
  const bool fits = (request.dtype == DType::invalid || request.dtype == tensor.dtype()) &&
                    (request.shape.empty() || request.shape == tensor.shape());
  if (fits) return found->second;
  const DType dtype = request.dtype == DType::invalid ? tensor.dtype() : request.dtype;
  return invalid_argument(who + ": " + std::string(numpy_name(tensor.dtype())) + " " + to_string(tensor.shape()) +
                          ", expected " + std::string(numpy_name(dtype)) + " " +
                          to_string(request.shape.empty() ? tensor.shape() : request.shape));
}

// The form of a file that holds another one.
Result<TensorForm> requested(const std::filesystem::path& path, TensorForm form, const TensorRequest& request) {
  if (!request.shape.empty() && form.shape != request.shape) {
    return mismatch(path, request, "shape " + to_string(form.shape), to_string(request.shape));
  }
  if (const std::string other = other_sides(form.shape, request); !other.empty()) {
    return mismatch(path, request, other, to_string(request.sides) + " from size, with or without channels");
  }
  if (request.dtype != DType::invalid) form.dtype = request.dtype;
  return form;
}

bool as_samples(const TensorRequest& request) {
  return request.texels || request.dtype == DType::u8 || request.dtype == DType::u16;
}

PngRequest png_request(const TensorRequest& request) {
  if (as_samples(request)) return {request.alpha, request.channels};
  return {request.alpha, request.shape.size() == 4 ? request.shape[1] : 0};
}

Result<TensorForm> picture_form(const std::filesystem::path& path, const PngInfo& info, const TensorRequest& request) {
  if (as_samples(request)) {
    const std::int64_t alpha = info.has_alpha && request.alpha != Alpha::drop ? 1 : 0;
    const std::int64_t channels = request.channels != 0 ? request.channels : info.colours + alpha;
    if (request.dtype != DType::invalid && request.dtype != info.sample) {
      return mismatch(path, request, std::string(numpy_name(info.sample)) + " samples",
                      std::string(numpy_name(request.dtype)));
    }
    TensorRequest any_type = request;
    any_type.dtype = DType::invalid;
    return requested(path, {info.sample, {info.height, info.width, channels}}, any_type);
  }
  const std::int64_t channels = info.channels(png_request(request));
  auto form = requested(path, {DType::f32, {1, channels, info.height, info.width}}, request);
  const bool other = info.has_alpha && request.shape.size() == 4 && request.shape[1] != channels;
  // Alpha that was asked for and changes the number of channels is named.
  if (!form && other) return form.error().within("alpha = \"" + std::string(to_string(request.alpha)) + "\"");
  return form;
}

Result<TensorForm> bytes_form(const std::filesystem::path& path, std::uint64_t bytes, const TensorRequest& request) {
  TensorForm form{request.dtype == DType::invalid ? DType::u8 : request.dtype, request.shape};
  const std::uint64_t element = size_of(form.dtype);
  if (form.shape.empty()) {
    if (bytes % element == 0) return TensorForm{form.dtype, {static_cast<std::int64_t>(bytes / element)}};
    return mismatch(path, request, std::to_string(bytes) + " bytes",
                    "a multiple of " + std::to_string(element) + " for " + std::string(numpy_name(form.dtype)));
  }
  std::uint64_t expected = element;
  for (const std::int64_t extent : form.shape) expected *= static_cast<std::uint64_t>(extent);
  if (bytes == expected) return form;
  return mismatch(
      path, request, std::to_string(bytes) + " bytes",
      std::to_string(expected) + " for " + std::string(numpy_name(form.dtype)) + " " + to_string(form.shape));
}

Result<std::shared_ptr<HostTensor>> load_bytes(const std::filesystem::path& path, const TensorRequest& request) {
  auto file = RegularFile::open(path);
  if (!file) return std::move(file).error().within(request.role);
  const auto form = bytes_form(path, file->bytes(), request);
  if (!form) return form.error();
  auto tensor = HostTensor::create(form->dtype, form->shape);
  if (!tensor) return tensor.error().within(request.role);
  if (Status status = file->read(0, (*tensor)->bytes()); !status.ok()) return status.within(request.role);
  return tensor;
}

Result<std::shared_ptr<HostTensor>> load_picture(const std::filesystem::path& path, const TensorRequest& request,
                                                 std::vector<std::string>* notes) {
  const bool samples = as_samples(request);
  auto picture = samples ? read_samples(path, png_request(request)) : read_picture(path, png_request(request));
  if (!picture) return picture.error().within(request.role);
  if (auto form = picture_form(path, picture->info, request); !form) return form.error();
  const Shape& shape = picture->tensor->shape();
  const std::int64_t channels = samples ? shape[2] : shape[1];
  const bool left_out = picture->info.has_alpha && (channels == 1 || channels == 3);
  if (left_out && request.alpha == Alpha::keep && notes != nullptr) {
    notes->push_back(std::string(request.role) + ": file " + path.string() + ": the alpha channel is left out. Set " +
                     std::to_string(picture->info.colours + 1) +
                     " channels to keep this channel; alpha = \"drop\" suppresses this note, " +
                     "\"premultiply\" multiplies the colours by alpha");
  }
  return std::move(picture->tensor);
}

}  // namespace

bool is_file(std::string_view source) noexcept {
  return source != zeros && !source.starts_with("random:") && !source.starts_with("he:") &&
         !source.starts_with(of_memory);
}

std::optional<std::string_view> memory_name(std::string_view source) noexcept {
  return source.starts_with(of_memory) ? std::optional(source.substr(of_memory.size())) : std::nullopt;
}

bool lacks_form(std::string_view source) {
  if (memory_name(source)) return false;
  return !is_file(source) || kind_of(std::filesystem::path(source)) == FileKind::bytes;
}

bool is_picture(const std::filesystem::path& path) { return kind_of(path) == FileKind::png; }

Result<std::shared_ptr<HostTensor>> load_tensor(std::string_view source, const std::filesystem::path& base,
                                                const TensorRequest& request, std::vector<std::string>* notes) {
  if (const auto name = memory_name(source)) return named_tensor(*name, request);
  if (const auto form = generated_form(source, request)) {
    if (!*form) return form->error();
    auto tensor = HostTensor::create((*form)->dtype, (*form)->shape);
    if (!tensor) return tensor.error().within(request.role);
    if (const auto seed = parse_random(source)) fill_random(**tensor, **seed);
    if (const auto seed = parse_he(source)) {
      if (Status status = fill_he(**tensor, **seed); !status.ok()) return status.within(request.role);
    }
    return tensor;
  }
  const std::filesystem::path path = base / std::filesystem::path(source);
  Result<std::shared_ptr<HostTensor>> tensor = unknown_source(source, request.role);
  switch (kind_of(path)) {
    case FileKind::npy:
      tensor = read_npy(path);
      if (!tensor) return tensor.error().within(request.role);
      if (auto form = requested(path, {(*tensor)->dtype(), (*tensor)->shape()}, request); !form) return form.error();
      break;
    case FileKind::png:
      tensor = load_picture(path, request, notes);
      break;
    case FileKind::bytes:
      return load_bytes(path, request);
    case FileKind::invalid:
      return tensor;
  }
  if (!tensor || request.dtype == DType::invalid || (*tensor)->dtype() == request.dtype) return tensor;
  auto as_wanted = converted(**tensor, request.dtype);
  const std::string who = std::string(request.role) + ": file " + path.string();
  if (!as_wanted) return as_wanted.error().within(who);
  if (notes != nullptr) {
    notes->push_back(who + ": converted from " + std::string(numpy_name((*tensor)->dtype())) + " to " +
                     std::string(numpy_name(request.dtype)) + " without loss");
  }
  return as_wanted;
}

Result<std::shared_ptr<const Constant>> load_constant(std::string_view source, const std::filesystem::path& base,
                                                      const TensorRequest& request, Memory* memory,
                                                      std::vector<std::string>* notes) {
  const std::string key = std::string(source) + " " + to_string(request.shape);
  if (memory != nullptr) {
    if (const auto made = memory->constants.find(key); made != memory->constants.end()) return made->second;
  }
  auto tensor = load_tensor(source, base, request, notes);
  if (!tensor) return std::move(tensor).error();
  if (memory_name(source)) {
    auto copy = HostTensor::create((*tensor)->dtype(), (*tensor)->shape());
    if (!copy) return copy.error().within(request.role);
    const auto bytes = std::as_const(**tensor).bytes();
    if (!bytes.empty()) std::memcpy((*copy)->bytes().data(), bytes.data(), bytes.size());
    *tensor = std::move(*copy);
  }
  auto made = Constant::create(std::move(*tensor));
  if (memory != nullptr) memory->constants.insert_or_assign(key, made);
  return made;
}

Result<TensorForm> form_of(std::string_view source, const std::filesystem::path& base, const TensorRequest& request) {
  if (const auto name = memory_name(source)) {
    const auto tensor = named_tensor(*name, request);
    if (!tensor) return tensor.error();
    return TensorForm{(*tensor)->dtype(), (*tensor)->shape()};
  }
  if (auto form = generated_form(source, request)) return *std::move(form);
  const std::filesystem::path path = base / std::filesystem::path(source);
  switch (kind_of(path)) {
    case FileKind::npy: {
      const auto header = read_npy_form(path);
      if (!header) return header.error().within(request.role);
      return requested(path, {header->dtype, header->shape}, request);
    }
    case FileKind::png: {
      const auto info = read_png_info(path);
      if (!info) return info.error().within(request.role);
      return picture_form(path, *info, request);
    }
    case FileKind::bytes: {
      const auto file = RegularFile::open(path);
      if (!file) return file.error().within(request.role);
      return bytes_form(path, file->bytes(), request);
    }
    case FileKind::invalid:
      break;
  }
  return unknown_source(source, request.role);
}

Status check_storable(const std::filesystem::path& path, DType dtype, const Shape& shape) {
  const FileKind kind = kind_of(path);
  if (kind == FileKind::npy) return {};
  if (kind == FileKind::png) return check_picture(dtype, shape).within("file " + path.string());
  if (kind == FileKind::bytes) return {};
  return invalid_argument("file " + path.string() + ": found extension \"" + path.extension().string() +
                          "\", expected .npy, .png, .bin or .raw");
}

Result<AtomicFile> prepare_tensor(const std::filesystem::path& path, const HostTensor& tensor) {
  if (Status status = check_storable(path, tensor.dtype(), tensor.shape()); !status.ok()) return status;
  if (const std::filesystem::path folder = path.parent_path(); !folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
      return io_error("file " + path.string() + ": cannot create folder " + folder.string() + ": " + error.message());
  }
  if (kind_of(path) == FileKind::npy) return prepare_npy(path, tensor);
  if (kind_of(path) == FileKind::png) return prepare_png(path, tensor);
  auto file = AtomicFile::create(path);
  if (!file) return std::move(file).error();
  if (Status status = file->write(tensor.bytes()); !status.ok()) return status;
  return file;
}

Status store_tensor(const std::filesystem::path& path, const HostTensor& tensor) {
  auto file = prepare_tensor(path, tensor);
  return file ? file->commit() : file.error();
}

}  // namespace kiln::data
