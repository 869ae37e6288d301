// Whether what a job provides fits one resource of a program: type, access, size and shape. Also the names of both in
// error messages.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/program_interface.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

// "uniform float gain", "storage block Letters (binding 5)", "value argument float gain (argument 2)"
std::string described(const ProgramResource& resource);
// "bindings[1] (name = \"Letters\")", "images.photo"
std::string described(const UserKernelSpec::Binding& binding, std::size_t position);
std::string_view given_as(const UserKernelSpec::Binding& binding) noexcept;  // "an input"
std::string list_of(std::span<const ProgramResource> resources, ResourceKind kind);
std::string bytes_text(std::uint64_t bytes);  // "1 byte"

// invalid_argument: the message goes on behind described(). all_read_only: every block that the binding provides is.
Status check_access(const ProgramResource& resource, const UserKernelSpec::Binding& given, bool all_read_only);
Status check_buffer(const ProgramResource& resource, const UserKernelSpec::Binding& given, bool all_read_only);
Status check_value(const ProgramResource& resource, const UserKernelSpec::Binding& given);

// "light.a[1][2]" behind its last dot: "a" and {1, 2}.
struct ElementName {
  std::size_t size = 0;  // of the name without indices
  std::vector<std::uint32_t> indices;
};
ElementName element_name(std::string_view name);

// The lengths that the values of a uniform may have, dimension by dimension.
struct Extent {
  std::uint32_t least = 0, most = 0;
};
// Of a uniform that is the last `outer` of its indices of what the job provides. The program may use fewer elements of
// an array than its source declares.
std::vector<Extent> extents_of(const ProgramResource& uniform, std::span<const std::uint32_t> indices,
                               std::size_t outer);
Status check_uniform(const ProgramResource& resource, const UserKernelSpec::Uniform& given,
                     const std::vector<Extent>& extents);

// match_texture: the texture for an image or sampler of a program, from the tensor that a job provides.
//
// Thread-safety: pure. Ownership: values.

// The size comes from the tensor's shape, the format from the program, the job or the tensor. invalid_argument and
// unsupported do not name the resource: shape, format or channels do not fit, or elements would be lost.
Result<TextureSource> match_texture(const ProgramResource& resource, const UserKernelSpec::Binding& given);

// The filter and wrap of a sampler without a texture. resource.element: that of the textures that it reads; unknown:
// integers and real numbers. invalid_argument: integers cannot be filtered so.
Result<TextureSource> match_sampler(const ProgramResource& resource, const UserKernelSpec::Binding& given);

}  // namespace kiln
