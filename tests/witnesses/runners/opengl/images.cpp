// kiln_witness_images: images in compute shaders on an OpenGL driver. Each case stores texels whose values follow from
// their place, and a second dispatch counts those that it reads back otherwise.
//
//   PROGRAM --out DIR [--device software|hardware] [NAME…]
//
// Leaves renderer.txt and status.txt in the out folder as the other runners do. Thread-safety: one thread.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <vector>

#include "witnesses/runners/opengl/opengl_context.hpp"
#include "witnesses/runners/renderer.hpp"

namespace kiln::witness {
namespace {

struct Format {
  GLenum format;
  const char* name;  // in GLSL
  char kind;         // f, i, u
  unsigned channels;
  unsigned most;       // values are 0 to `most`
  double scale;        // what 1.0 is stored as; 1 of integers and floats
  double alpha_scale;  // likewise; 0: as the others
};

constexpr Format formats[] = {{GL_R32UI, "r32ui", 'u', 1, 0xFFFF, 1, 0},
                              {GL_RG32UI, "rg32ui", 'u', 2, 0xFFFF, 1, 0},
                              {GL_RGBA32UI, "rgba32ui", 'u', 4, 0xFFFF, 1, 0},
                              {GL_R16UI, "r16ui", 'u', 1, 0xFFFF, 1, 0},
                              {GL_RG16UI, "rg16ui", 'u', 2, 0xFFFF, 1, 0},
                              {GL_RGBA16UI, "rgba16ui", 'u', 4, 0xFFFF, 1, 0},
                              {GL_R8UI, "r8ui", 'u', 1, 0xFF, 1, 0},
                              {GL_RG8UI, "rg8ui", 'u', 2, 0xFF, 1, 0},
                              {GL_RGBA8UI, "rgba8ui", 'u', 4, 0xFF, 1, 0},
                              {GL_RGB10_A2UI, "rgb10_a2ui", 'u', 3, 0x3FF, 1, 0},
                              {GL_R32I, "r32i", 'i', 1, 0x7FFF, 1, 0},
                              {GL_RG32I, "rg32i", 'i', 2, 0x7FFF, 1, 0},
                              {GL_RGBA32I, "rgba32i", 'i', 4, 0x7FFF, 1, 0},
                              {GL_R16I, "r16i", 'i', 1, 0x7FFF, 1, 0},
                              {GL_RG16I, "rg16i", 'i', 2, 0x7FFF, 1, 0},
                              {GL_RGBA16I, "rgba16i", 'i', 4, 0x7FFF, 1, 0},
                              {GL_R8I, "r8i", 'i', 1, 0x7F, 1, 0},
                              {GL_RG8I, "rg8i", 'i', 2, 0x7F, 1, 0},
                              {GL_RGBA8I, "rgba8i", 'i', 4, 0x7F, 1, 0},
                              {GL_R32F, "r32f", 'f', 1, 0xFFFF, 1, 0},
                              {GL_RG32F, "rg32f", 'f', 2, 0xFFFF, 1, 0},
                              {GL_RGBA32F, "rgba32f", 'f', 4, 0xFFFF, 1, 0},
                              {GL_R16F, "r16f", 'f', 1, 0x7FF, 1, 0},
                              {GL_RG16F, "rg16f", 'f', 2, 0x7FF, 1, 0},
                              {GL_RGBA16F, "rgba16f", 'f', 4, 0x7FF, 1, 0},
                              {GL_R11F_G11F_B10F, "r11f_g11f_b10f", 'f', 3, 0x1F, 1, 0},
                              {GL_R16, "r16", 'f', 1, 0xFFFF, 65535, 0},
                              {GL_RG16, "rg16", 'f', 2, 0xFFFF, 65535, 0},
                              {GL_RGBA16, "rgba16", 'f', 4, 0xFFFF, 65535, 0},
                              {GL_R8, "r8", 'f', 1, 0xFF, 255, 0},
                              {GL_RG8, "rg8", 'f', 2, 0xFF, 255, 0},
                              {GL_RGBA8, "rgba8", 'f', 4, 0xFF, 255, 0},
                              {GL_RGB10_A2, "rgb10_a2", 'f', 4, 3, 1023, 3},
                              {GL_R16_SNORM, "r16_snorm", 'f', 1, 0x7FFF, 32767, 0},
                              {GL_RG16_SNORM, "rg16_snorm", 'f', 2, 0x7FFF, 32767, 0},
                              {GL_RGBA16_SNORM, "rgba16_snorm", 'f', 4, 0x7FFF, 32767, 0},
                              {GL_R8_SNORM, "r8_snorm", 'f', 1, 0x7F, 127, 0},
                              {GL_RG8_SNORM, "rg8_snorm", 'f', 2, 0x7F, 127, 0},
                              {GL_RGBA8_SNORM, "rgba8_snorm", 'f', 4, 0x7F, 127, 0}};

struct Shape {
  const char* name;
  GLenum target;
  const char* glsl;  // of image2D: 2D
  int width, height, depth, levels;
};

// Sizes that Mesa lays out linear, in small and large blocks, with levels in a common block, and compressed.
constexpr Shape shapes[] = {{"row", GL_TEXTURE_1D, "1D", 77, 1, 1, 1},
                            {"rows", GL_TEXTURE_1D_ARRAY, "1DArray", 40, 1, 5, 2},
                            {"small", GL_TEXTURE_2D, "2D", 32, 16, 1, 1},
                            {"levels", GL_TEXTURE_2D, "2D", 100, 70, 1, 7},
                            {"large", GL_TEXTURE_2D, "2D", 300, 200, 1, 1},
                            {"layers", GL_TEXTURE_2D_ARRAY, "2DArray", 33, 21, 5, 3},
                            {"volume", GL_TEXTURE_3D, "3D", 20, 18, 17, 3},
                            {"cube", GL_TEXTURE_CUBE_MAP, "Cube", 24, 24, 6, 2},
                            {"rectangle", GL_TEXTURE_RECTANGLE, "2DRect", 50, 30, 1, 1}};

struct Functions {
  explicit Functions(const OpenglContext& context) {
    context.find(gen_textures, "glGenTextures");
    context.find(delete_textures, "glDeleteTextures");
    context.find(bind_texture, "glBindTexture");
    context.find(storage1, "glTexStorage1D");
    context.find(storage2, "glTexStorage2D");
    context.find(storage3, "glTexStorage3D");
    context.find(parameter, "glTexParameteri");
    context.find(bind_image, "glBindImageTexture");
    context.find(uniform3, "glUniform3i");
    context.find(upload2, "glTexSubImage2D");
  }
  PFNGLGENTEXTURESPROC gen_textures;
  PFNGLDELETETEXTURESPROC delete_textures;
  PFNGLBINDTEXTUREPROC bind_texture;
  PFNGLTEXSTORAGE1DPROC storage1;
  PFNGLTEXSTORAGE2DPROC storage2;
  PFNGLTEXSTORAGE3DPROC storage3;
  PFNGLTEXPARAMETERIPROC parameter;
  PFNGLBINDIMAGETEXTUREPROC bind_image;
  PFNGLUNIFORM3IPROC uniform3;
  PFNGLTEXSUBIMAGE2DPROC upload2;
};

class Images {
 public:
  explicit Images(bool software)
      : context_(software ? DeviceChoice::software : DeviceChoice::hardware), gl_(context_.gl()), more_(context_) {
    const GLuint zero[64] = {};
    gl_.gen_buffers(1, &wrong_);
    gl_.bind_buffer(GL_SHADER_STORAGE_BUFFER, wrong_);
    gl_.buffer_data(GL_SHADER_STORAGE_BUFFER, sizeof(zero), zero, GL_DYNAMIC_COPY);
    gl_.bind_buffer_base(GL_SHADER_STORAGE_BUFFER, 0, wrong_);
    more_.gen_textures(1, &texture_);
  }
  ~Images() { gl_.delete_buffers(1, &wrong_); }
  Images(const Images&) = delete;
  Images& operator=(const Images&) = delete;

  std::string name() const { return context_.name(); }
  // Throws std::runtime_error, with what was wrong.
  void run(const std::string& name) {
    clear();
    if (name == "atomics") {
      atomics();
    } else if (name == "samples") {
      samples();
    } else {
      const std::size_t dash = name.find('-');
      for (const Shape& shape : shapes) {
        for (const Format& format : formats) {
          if (name.substr(0, dash) == shape.name && name.substr(dash + 1) == format.name) round_trip(shape, format);
        }
      }
    }
    context_.check("images");
    GLuint count = 0;
    gl_.get_buffer_data(GL_SHADER_STORAGE_BUFFER, 0, sizeof(count), &count);
    if (count != 0) throw std::runtime_error(std::to_string(count) + " texels are wrong");
  }

 private:
  void clear() {
    const GLuint zero[64] = {};
    gl_.bind_buffer(GL_SHADER_STORAGE_BUFFER, wrong_);
    gl_.buffer_data(GL_SHADER_STORAGE_BUFFER, sizeof(zero), zero, GL_DYNAMIC_COPY);
    more_.delete_textures(1, &texture_);
    more_.gen_textures(1, &texture_);
  }

  GLuint use(const std::string& body) {
    const std::string text =
        "#version 450\nlayout(std430, binding = 0) buffer Wrong { uint wrong; };\n"
        "layout(location = 0) uniform ivec3 size;\nlayout(location = 1) uniform int level;\n" +
        body;
    const char* pointer = text.c_str();
    const GLuint shader = gl_.create_shader(GL_COMPUTE_SHADER), program = gl_.create_program();
    gl_.shader_source(shader, 1, &pointer, nullptr);
    gl_.compile_shader(shader);
    gl_.attach_shader(program, shader);
    gl_.link_program(program);
    gl_.delete_shader(shader);
    GLint done = GL_FALSE;
    gl_.get_program(program, GL_LINK_STATUS, &done);
    if (done == GL_FALSE) throw std::runtime_error("does not link: " + text);
    gl_.use_program(program);
    return program;
  }

  void round_trip(const Shape& shape, const Format& format) {
    const bool rows = shape.target == GL_TEXTURE_1D_ARRAY;
    more_.bind_texture(shape.target, texture_);
    if (shape.target == GL_TEXTURE_1D) {
      more_.storage1(shape.target, shape.levels, format.format, shape.width);
    } else if (shape.target == GL_TEXTURE_3D || shape.target == GL_TEXTURE_2D_ARRAY) {
      more_.storage3(shape.target, shape.levels, format.format, shape.width, shape.height, shape.depth);
    } else {
      more_.storage2(shape.target, shape.levels, format.format, shape.width, rows ? shape.depth : shape.height);
    }
    const std::string kind = format.kind == 'f' ? "" : std::string(1, format.kind);
    const std::string dims = shape.glsl;
    const std::string at = dims == "1D" ? "p.x" : rows ? "p.xz" : dims == "2D" || dims == "2DRect" ? "p.xy" : "p";
    const double alpha = format.alpha_scale != 0 ? format.alpha_scale : format.scale;
    const std::string values =
        "ivec4 wanted(ivec3 p) { ivec4 v; for (int c = 0; c < 4; ++c) v[c] = (p.x + 3 * p.y + 7 * p.z + 29 * c + "
        "11 * level + 5 * p.x * p.y) & " +
        std::to_string(format.most) +
        "; return v; }\n"
        "const vec4 scale = vec4(vec3(" +
        std::to_string(format.scale) + "), " + std::to_string(alpha) + ");\n";
    const std::string head = "layout(local_size_x = 8, local_size_y = 8) in;\nlayout(" + std::string(format.name) +
                             ", binding = 0) uniform " + kind + "image" + dims + " image;\n" + values +
                             "void main() { ivec3 p = ivec3(gl_GlobalInvocationID);\n"
                             "  if (any(greaterThanEqual(p, size))) return;\n";
    const std::string given = format.kind == 'f' ? "vec4(wanted(p)) / scale" : kind + "vec4(wanted(p))";
    const GLuint store = use(head + "  imageStore(image, " + at + ", " + given + "); }");
    const std::string read = format.kind == 'f' ? "ivec4(round(imageLoad(image, " + at + ") * scale))"
                                                : "ivec4(imageLoad(image, " + at + "))";
    const GLuint load = use(head + "  ivec4 got = " + read + ", want = wanted(p);\n  for (int c = 0; c < " +
                            std::to_string(format.channels) + "; ++c) if (got[c] != want[c]) atomicAdd(wrong, 1u); }");
    for (const GLuint program : {store, load}) {
      gl_.use_program(program);
      for (int level = 0; level < shape.levels; ++level) {
        const int width = std::max(1, shape.width >> level), height = std::max(1, shape.height >> level);
        const int depth = shape.target == GL_TEXTURE_3D ? std::max(1, shape.depth >> level) : shape.depth;
        more_.bind_image(0, texture_, level, GL_TRUE, 0, GL_READ_WRITE, format.format);
        more_.uniform3(0, width, height, depth);
        gl_.uniform_int(1, level);
        gl_.dispatch(static_cast<GLuint>(width + 7) / 8, static_cast<GLuint>(height + 7) / 8,
                     static_cast<GLuint>(depth));
      }
      gl_.memory_barrier(GL_ALL_BARRIER_BITS);
    }
    gl_.delete_program(store);
    gl_.delete_program(load);
  }

  void dispatch(const std::string& body, GLuint x, GLuint y) {
    const GLuint program = use(body);
    gl_.dispatch(x, y, 1);
    gl_.memory_barrier(GL_ALL_BARRIER_BITS);
    gl_.delete_program(program);
  }

  // 4,096 invocations change 64 texels.
  void atomics() {
    more_.bind_texture(GL_TEXTURE_2D, texture_);
    more_.storage2(GL_TEXTURE_2D, 1, GL_R32UI, 64, 8);
    more_.bind_image(0, texture_, 0, GL_FALSE, 0, GL_READ_WRITE, GL_R32UI);
    const std::string head =
        "layout(local_size_x = 64) in;\nlayout(r32ui, binding = 0) uniform uimage2D image;\n"
        "void main() { int x = int(gl_LocalInvocationID.x); uint g = gl_WorkGroupID.x;\n";
    dispatch(head + "for (int y = 0; y < 8; ++y) imageStore(image, ivec2(x, y), uvec4(y == 4 ? ~0u : 100)); }", 1, 1);
    dispatch(head +
                 "imageAtomicAdd(image, ivec2(x, 0), g); imageAtomicMax(image, ivec2(x, 1), g * 7);\n"
                 "imageAtomicMin(image, ivec2(x, 2), g + 3); imageAtomicOr(image, ivec2(x, 3), 1u << (g & 31));\n"
                 "imageAtomicAnd(image, ivec2(x, 4), ~(1u << (g & 31))); imageAtomicXor(image, ivec2(x, 5), g);\n"
                 "imageAtomicCompSwap(image, ivec2(x, 6), 100, 7); imageAtomicExchange(image, ivec2(x, 7), 9u); }",
             64, 1);
    dispatch(head +
                 "uint want[8] = uint[](100 + 63 * 32, 63 * 7, 3, ~0u, 0, 100, 7, 9);\n"
                 "for (int y = 0; y < 8; ++y) if (imageLoad(image, ivec2(x, y)).x != want[y]) atomicAdd(wrong, 1u);\n"
                 "if (imageSize(image) != ivec2(64, 8)) atomicAdd(wrong, 1u);\n"
                 "if (imageLoad(image, ivec2(64, 0)).x != 0 || imageLoad(image, ivec2(-1, 3)).x != 0) "
                 "atomicAdd(wrong, 1u); }",
             1, 1);
  }

  // Of an image that the host fills: 64 x 32, x + 64 y and twice that.
  void samples() {
    std::vector<float> texels;
    for (int i = 0; i < 64 * 32; ++i) texels.insert(texels.end(), {static_cast<float>(i), static_cast<float>(2 * i)});
    more_.bind_texture(GL_TEXTURE_2D, texture_);
    more_.storage2(GL_TEXTURE_2D, 1, GL_RG32F, 64, 32);
    more_.upload2(GL_TEXTURE_2D, 0, 0, 0, 64, 32, GL_RG, GL_FLOAT, texels.data());
    more_.parameter(GL_TEXTURE_2D, GL_TEXTURE_WRAP_S, GL_REPEAT);
    more_.parameter(GL_TEXTURE_2D, GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE);
    const std::string head =
        "layout(local_size_x = 64) in;\nlayout(binding = 0) uniform sampler2D image;\n"
        "void main() { ivec2 p = ivec2(gl_GlobalInvocationID.xy); vec2 size = vec2(64.0, 32.0);\n"
        "float whole = float(p.x + 64 * p.y); vec2 at = (vec2(p) + 0.5) / size;\n";
    more_.parameter(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
    more_.parameter(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
    dispatch(head +
                 "if (texelFetch(image, p, 0) != vec4(whole, 2.0 * whole, 0.0, 1.0)) atomicAdd(wrong, 1u);\n"
                 "if (textureLod(image, at + vec2(3.0, 0.0), 0.0).x != whole) atomicAdd(wrong, 1u);\n"
                 "if (textureLod(image, vec2(at.x, -2.0), 0.0).x != float(p.x)) atomicAdd(wrong, 1u);\n"
                 "if (textureLodOffset(image, at, 0.0, ivec2(1, 0)).x != float((p.x + 1) % 64 + 64 * p.y)) "
                 "atomicAdd(wrong, 1u);\n"
                 "if (textureSize(image, 0) != ivec2(64, 32) || textureQueryLevels(image) != 1) "
                 "atomicAdd(wrong, 1u); }",
             1, 32);
    more_.parameter(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_LINEAR);
    more_.parameter(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_LINEAR);
    dispatch(head +
                 "bool inside = p.x < 63 && p.y < 31; vec2 between = at + vec2(0.25, 0.5) / size;\n"
                 "if (inside && textureLod(image, between, 0.0).xy != (whole + 0.25 + 32.0) * vec2(1.0, 2.0)) "
                 "atomicAdd(wrong, 1u);\n"
                 "vec4 four = textureGather(image, at + 0.5 / size, 1);\n"
                 "if (inside && four != 2.0 * (whole + vec4(64.0, 65.0, 1.0, 0.0))) atomicAdd(wrong, 1u); }",
             1, 32);
  }

  OpenglContext context_;
  const GlFunctions& gl_;
  Functions more_;
  GLuint wrong_ = 0;
  GLuint texture_ = 0;
};

int run_images(const std::vector<std::string>& arguments) {
  std::string out;
  bool software = true;
  std::vector<std::string> names;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i] == "--out" && i + 1 < arguments.size()) {
      out = arguments[++i];
    } else if (arguments[i] == "--device" && i + 1 < arguments.size()) {
      software = arguments[++i] == "software";
    } else if (arguments[i] == "--shaders" && i + 1 < arguments.size()) {
      ++i;
    } else {
      names.push_back(arguments[i]);
    }
  }
  Images images(software);
  std::ofstream(out + "/renderer.txt") << images.name();
  std::ofstream status(out + "/status.txt", std::ios::app);
  for (const std::string& name : names) {
    status << name << "\tbegun\t\n" << std::flush;
    try {
      images.run(name);
      status << name << "\tok\t\n" << std::flush;
    } catch (const std::runtime_error& error) {
      status << name << "\tfailed\t" << error.what() << "\n" << std::flush;
    }
  }
  return 0;
}

}  // namespace
}  // namespace kiln::witness

int main(int argument_count, char** arguments) {
  try {
    return kiln::witness::run_images({arguments, arguments + argument_count});
  } catch (const kiln::witness::NoRenderer& error) {
    std::cerr << error.what() << '\n';
    return 3;
  }
}
