#include "texture.hpp"

#include <algorithm>
#include <iterator>
#include <string>

namespace kiln::opengl {
namespace {

// In the order of ImageFormat.
constexpr GLenum internal_formats[] = {GL_NONE,           GL_RGBA32F,     GL_RGBA16F,    GL_RG32F,     GL_RG16F,
                                       GL_R11F_G11F_B10F, GL_R32F,        GL_R16F,       GL_RGBA16,    GL_RGB10_A2,
                                       GL_RGBA8,          GL_RG16,        GL_RG8,        GL_R16,       GL_R8,
                                       GL_RGBA16_SNORM,   GL_RGBA8_SNORM, GL_RG16_SNORM, GL_RG8_SNORM, GL_R16_SNORM,
                                       GL_R8_SNORM,       GL_RGBA32I,     GL_RGBA16I,    GL_RGBA8I,    GL_RG32I,
                                       GL_RG16I,          GL_RG8I,        GL_R32I,       GL_R16I,      GL_R8I,
                                       GL_RGBA32UI,       GL_RGBA16UI,    GL_RGB10_A2UI, GL_RGBA8UI,   GL_RG32UI,
                                       GL_RG16UI,         GL_RG8UI,       GL_R32UI,      GL_R16UI,     GL_R8UI};
static_assert(std::size(internal_formats) == image_formats);

GLenum internal_format(ImageFormat format) noexcept { return internal_formats[static_cast<std::size_t>(format)]; }

// Of the buffer.
GLenum client_format(const TextureSource& form) noexcept {
  constexpr GLenum real[] = {GL_RED, GL_RG, GL_RGB, GL_RGBA};
  constexpr GLenum integer[] = {GL_RED_INTEGER, GL_RG_INTEGER, GL_RGB_INTEGER, GL_RGBA_INTEGER};
  const std::size_t at = form.channels - 1;
  return facts_of(form.format).kind == TexelKind::integer ? integer[at] : real[at];
}

GLenum client_type(DType dtype) noexcept {
  switch (dtype) {
    case DType::f32:
      return GL_FLOAT;
    case DType::f16:
      return GL_HALF_FLOAT;
    case DType::i8:
      return GL_BYTE;
    case DType::i16:
      return GL_SHORT;
    case DType::i32:
      return GL_INT;
    case DType::u8:
      return GL_UNSIGNED_BYTE;
    case DType::u16:
      return GL_UNSIGNED_SHORT;
    default:
      return GL_UNSIGNED_INT;
  }
}

constexpr GLsizei faces = 6;

// Width, height and depth as the functions of a target take them.
struct Extent {
  GLsizei dimensions, width, height, depth;
};

Extent extent_of(GLenum target, const TextureSource& form) noexcept {
  const auto side = [&form](std::size_t i) { return static_cast<GLsizei>(std::max<std::uint32_t>(form.size[i], 1)); };
  switch (target) {
    case GL_TEXTURE_1D:
      return {1, side(0), 1, 1};
    case GL_TEXTURE_2D:
    case GL_TEXTURE_RECTANGLE:
    case GL_TEXTURE_CUBE_MAP:
    case GL_TEXTURE_1D_ARRAY:
      return {2, side(0), side(1), 1};
    default:
      return {3, side(0), side(1), side(2)};
  }
}

Status check_size(const Gl& gl, GLenum target, const Extent& extent) {
  const auto limit = [&gl](GLenum name) {
    GLint value = 0;
    gl.GetIntegerv(name, &value);
    return value;
  };
  GLint sides = limit(GL_MAX_TEXTURE_SIZE), layers = sides;
  if (target == GL_TEXTURE_3D) sides = layers = limit(GL_MAX_3D_TEXTURE_SIZE);
  if (target == GL_TEXTURE_RECTANGLE) sides = limit(GL_MAX_RECTANGLE_TEXTURE_SIZE);
  if (target == GL_TEXTURE_CUBE_MAP || target == GL_TEXTURE_CUBE_MAP_ARRAY) sides = limit(GL_MAX_CUBE_MAP_TEXTURE_SIZE);
  const bool arrays = target == GL_TEXTURE_1D_ARRAY || target == GL_TEXTURE_2D_ARRAY;
  if (arrays || target == GL_TEXTURE_CUBE_MAP_ARRAY) layers = limit(GL_MAX_ARRAY_TEXTURE_LAYERS);
  const GLsizei most_height = target == GL_TEXTURE_1D_ARRAY ? layers : sides;
  if (extent.width <= sides && extent.height <= most_height && extent.depth <= layers) return {};
  return unsupported("an image of " + std::to_string(extent.width) + " x " + std::to_string(extent.height) + " x " +
                     std::to_string(extent.depth) + " texels, the device takes at most " + std::to_string(sides) +
                     " on a side and " + std::to_string(layers) + " in depth or layers");
}

const void* at_byte(GLsizeiptr offset) noexcept { return reinterpret_cast<const void*>(offset); }

GLint filter_of(const TextureSource& form) noexcept {
  return form.filter == TextureFilter::linear ? GL_LINEAR : GL_NEAREST;
}

GLint wrap_of(const TextureSource& form) noexcept {
  constexpr GLint modes[] = {GL_CLAMP_TO_EDGE, GL_REPEAT, GL_MIRRORED_REPEAT, GL_CLAMP_TO_BORDER};
  return modes[static_cast<std::size_t>(form.wrap)];
}

}  // namespace

Status PixelTexture::create(const Gl& gl) {
  const Extent extent = extent_of(target_, form_);
  if (target_ == GL_TEXTURE_RECTANGLE && (form_.wrap == TextureWrap::repeat || form_.wrap == TextureWrap::mirror)) {
    return invalid_argument("a rectangle texture (sampler2DRect) with wrap = \"" + std::string(to_string(form_.wrap)) +
                            "\", expected \"clamp\" or \"border\"");
  }
  if (Status status = check_size(gl, target_, extent); !status.ok()) return status;
  const GLenum format = internal_format(form_.format);
  if (extent.dimensions == 1) {
    gl.TexStorage1D(target_, 1, format, extent.width);
  } else if (extent.dimensions == 2) {
    gl.TexStorage2D(target_, 1, format, extent.width, extent.height);
  } else {
    gl.TexStorage3D(target_, 1, format, extent.width, extent.height, extent.depth);
  }
  gl.TexParameteri(target_, GL_TEXTURE_MIN_FILTER, filter_of(form_));
  gl.TexParameteri(target_, GL_TEXTURE_MAG_FILTER, filter_of(form_));
  for (const GLenum axis : {GL_TEXTURE_WRAP_S, GL_TEXTURE_WRAP_T, GL_TEXTURE_WRAP_R}) {
    gl.TexParameteri(target_, axis, wrap_of(form_));
  }
  return {};
}

Status PixelTexture::fill(const Gl& gl, GLenum target, const TextureSource& form, GLuint buffer, GLsizeiptr bytes) {
  if (name_ != 0 && (target_ != target || !(form_ == form))) drop(gl);
  const bool fresh = name_ == 0;
  target_ = target;
  form_ = form;
  if (fresh) gl.GenTextures(1, &name_);
  gl.ActiveTexture(GL_TEXTURE0);
  gl.BindTexture(target_, name_);
  if (target_ == GL_TEXTURE_BUFFER) {
    GLint most = 0;
    gl.GetIntegerv(GL_MAX_TEXTURE_BUFFER_SIZE, &most);
    if (form_.size[0] > static_cast<std::uint32_t>(most)) {
      return unsupported("an image of " + std::to_string(form_.size[0]) +
                         " texels in a buffer, the device takes at most " + std::to_string(most));
    }
    if (fresh) gl.TexBufferRange(target_, internal_format(form_.format), buffer, 0, bytes);
    gl.BindTexture(target_, 0);
    return {};
  }
  if (fresh) {
    if (Status status = create(gl); !status.ok()) {
      gl.BindTexture(target_, 0);
      drop(gl);
      return status;
    }
  }
  const Extent extent = extent_of(target_, form_);
  const GLenum format = client_format(form_), type = client_type(form_.dtype);
  gl.BindBuffer(GL_PIXEL_UNPACK_BUFFER, buffer);
  gl.PixelStorei(GL_UNPACK_ALIGNMENT, 1);
  if (target_ == GL_TEXTURE_CUBE_MAP) {
    for (GLsizei face = 0; face < faces; ++face) {
      gl.TexSubImage2D(GL_TEXTURE_CUBE_MAP_POSITIVE_X + static_cast<GLenum>(face), 0, 0, 0, extent.width, extent.height,
                       format, type, at_byte(bytes / faces * face));
    }
  } else if (extent.dimensions == 1) {
    gl.TexSubImage1D(target_, 0, 0, extent.width, format, type, nullptr);
  } else if (extent.dimensions == 2) {
    gl.TexSubImage2D(target_, 0, 0, 0, extent.width, extent.height, format, type, nullptr);
  } else {
    gl.TexSubImage3D(target_, 0, 0, 0, 0, extent.width, extent.height, extent.depth, format, type, nullptr);
  }
  gl.BindBuffer(GL_PIXEL_UNPACK_BUFFER, 0);
  gl.BindTexture(target_, 0);
  return {};
}

void PixelTexture::read_back(const Gl& gl, GLuint buffer) const {
  if (target_ == GL_TEXTURE_BUFFER) return;
  const GLenum format = client_format(form_), type = client_type(form_.dtype);
  gl.ActiveTexture(GL_TEXTURE0);
  gl.BindTexture(target_, name_);
  gl.BindBuffer(GL_PIXEL_PACK_BUFFER, buffer);
  gl.PixelStorei(GL_PACK_ALIGNMENT, 1);
  if (target_ == GL_TEXTURE_CUBE_MAP) {
    const GLsizeiptr face_bytes = GLsizeiptr{form_.channels} * form_.size[0] * form_.size[1] * size_of(form_.dtype);
    for (GLsizei face = 0; face < faces; ++face) {
      gl.GetTexImage(GL_TEXTURE_CUBE_MAP_POSITIVE_X + static_cast<GLenum>(face), 0, format, type,
                     const_cast<void*>(at_byte(face_bytes * face)));
    }
  } else {
    gl.GetTexImage(target_, 0, format, type, nullptr);
  }
  gl.BindBuffer(GL_PIXEL_PACK_BUFFER, 0);
  gl.BindTexture(target_, 0);
}

void PixelTexture::bind_image(const Gl& gl, GLuint unit) const {
  gl.BindImageTexture(unit, name_, 0, GL_TRUE, 0, GL_READ_WRITE, internal_format(form_.format));
}

void PixelTexture::bind_sampler(const Gl& gl, GLuint unit) const {
  gl.ActiveTexture(GL_TEXTURE0 + unit);
  gl.BindTexture(target_, name_);
}

void PixelTexture::unbind(const Gl& gl, GLuint image_unit, GLuint texture_unit) const {
  if (image_unit != GL_INVALID_INDEX) gl.BindImageTexture(image_unit, 0, 0, GL_FALSE, 0, GL_READ_ONLY, GL_RGBA32F);
  if (texture_unit == GL_INVALID_INDEX) return;
  gl.ActiveTexture(GL_TEXTURE0 + texture_unit);
  gl.BindTexture(target_, 0);
}

void PixelTexture::drop(const Gl& gl) {
  if (name_ != 0) gl.DeleteTextures(1, &name_);
  name_ = 0;
}

namespace {

constexpr GLsizeiptr texel_bytes = 16;

}  // namespace

void TexelView::bind(const Gl& gl, GLuint unit, View view, GLuint buffer, GLsizeiptr bytes) {
  gl.ActiveTexture(GL_TEXTURE0 + unit);
  if (name_ == 0) {
    gl.GenTextures(1, &name_);
    gl.BindTexture(GL_TEXTURE_BUFFER, name_);
    const GLsizeiptr whole = (bytes + texel_bytes - 1) / texel_bytes * texel_bytes;
    gl.TexBufferRange(GL_TEXTURE_BUFFER, GL_RGBA32F, buffer, 0, whole);
  } else {
    gl.BindTexture(GL_TEXTURE_BUFFER, name_);
  }
  if (view == View::image) gl.BindImageTexture(unit, name_, 0, GL_FALSE, 0, GL_READ_ONLY, GL_RGBA32F);
}

void TexelView::unbind(const Gl& gl, GLuint unit, View view) {
  if (view != View::texels && view != View::image) return;
  gl.ActiveTexture(GL_TEXTURE0 + unit);
  gl.BindTexture(GL_TEXTURE_BUFFER, 0);
  if (view == View::image) gl.BindImageTexture(unit, 0, 0, GL_FALSE, 0, GL_READ_ONLY, GL_RGBA32F);
}

void TexelView::drop(const Gl& gl) {
  if (name_ != 0) gl.DeleteTextures(1, &name_);
  name_ = 0;
}

}  // namespace kiln::opengl
