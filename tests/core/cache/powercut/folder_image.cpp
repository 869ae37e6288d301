#include "core/cache/powercut/folder_image.hpp"

#include "base/digest.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <stdexcept>
#include <system_error>

namespace kiln::test {
namespace {

std::string read_whole(const std::filesystem::path& path, std::size_t size) {
  std::string bytes(size, '\0');
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t got = file < 0 ? -1 : read(file, bytes.data(), size);
  if (file >= 0) close(file);
  if (got != static_cast<ssize_t>(size)) throw std::runtime_error("cannot read " + path.string());
  return bytes;
}

void write_whole(const std::filesystem::path& path, std::string_view bytes, const timespec (&times)[2]) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const ssize_t put = file < 0 ? -1 : write(file, bytes.data(), bytes.size());
  if (file >= 0) {
    futimens(file, times);
    close(file);
  }
  if (put != static_cast<ssize_t>(bytes.size())) throw std::runtime_error("cannot write " + path.string());
}

struct stat look_at(const std::filesystem::path& path) {
  struct stat at {};
  if (lstat(path.c_str(), &at) != 0) throw std::system_error(errno, std::generic_category(), path.string());
  return at;
}

}  // namespace

FolderImage FolderImage::of(const std::filesystem::path& folder) {
  FolderImage image;
  std::map<std::filesystem::path, Node> parents{{folder, root}};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const struct stat at = look_at(entry.path());
    const Node parent = parents.at(entry.path().parent_path());
    if (S_ISDIR(at.st_mode)) {
      parents[entry.path()] = at.st_ino;
      image.make_folder(at.st_ino);
    } else if (!image.files_.contains(at.st_ino)) {
      image.set(at.st_ino, read_whole(entry.path(), static_cast<std::size_t>(at.st_size)));
    }
    image.name(parent, entry.path().filename(), at.st_ino);
  }
  return image;
}

void FolderImage::make_file(Node file) { set(file, {}); }

void FolderImage::make_folder(Node folder) { folders_[folder] = {}; }

void FolderImage::name(Node in, const std::string& name, Node what) { folders_.at(in)[name] = what; }

void FolderImage::forget(Node in, const std::string& name) { folders_.at(in).erase(name); }

void FolderImage::set(Node file, std::string bytes) {
  const Checksum sum = xxh3_128(std::as_bytes(std::span(bytes)));
  files_[file] = std::make_shared<const Content>(
      Content{std::move(bytes), std::string(reinterpret_cast<const char*>(sum.data()), sum.size())});
}

void FolderImage::write(Node file, std::uint64_t at, std::string_view bytes) {
  std::string now = files_.at(file)->bytes;
  now.resize(std::max<std::size_t>(now.size(), at + bytes.size()));
  now.replace(at, bytes.size(), bytes);
  set(file, std::move(now));
}

void FolderImage::resize(Node file, std::uint64_t size) {
  std::string now = files_.at(file)->bytes;
  now.resize(size);
  set(file, std::move(now));
}

std::optional<Node> FolderImage::find(std::string_view path) const {
  Node at = root;
  while (!path.empty()) {
    const auto folder = folders_.find(at);
    if (folder == folders_.end()) return std::nullopt;
    const std::size_t end = std::min(path.find('/'), path.size());
    const auto named = folder->second.find(path.substr(0, end));
    if (named == folder->second.end()) return std::nullopt;
    at = named->second;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return at;
}

std::optional<std::string_view> FolderImage::bytes_at(std::string_view path) const {
  const auto node = find(path);
  if (!node || !files_.contains(*node)) return std::nullopt;
  return bytes_of(*node);
}

std::string_view FolderImage::bytes_of(Node file) const { return files_.at(file)->bytes; }

template <class OnPath>
void FolderImage::walk(Node folder, const std::string& path, const OnPath& on_path) const {
  for (const auto& [name, node] : folders_.at(folder)) {
    on_path(path + name, node);
    if (folders_.contains(node)) walk(node, path + name + "/", on_path);
  }
}

std::vector<std::string> FolderImage::paths() const {
  std::vector<std::string> found;
  walk(root, {}, [&](const std::string& path, Node node) {
    if (files_.contains(node)) found.push_back(path);
  });
  return found;
}

std::string FolderImage::fingerprint() const {
  std::string text;
  std::map<Node, std::size_t> seen;
  walk(root, {}, [&](const std::string& path, Node node) {
    text += path + '\0';
    if (folders_.contains(node)) return;
    const auto [first, is_first] = seen.emplace(node, seen.size());
    text += is_first ? files_.at(node)->sum : std::to_string(first->second);  // another name of the same file
    text += '\0';
  });
  const Checksum sum = xxh3_128(std::as_bytes(std::span(text)));
  return {reinterpret_cast<const char*>(sum.data()), sum.size()};
}

void FolderImage::put(const std::filesystem::path& folder, std::int64_t changed_s) const {
  const timespec times[2] = {{changed_s, 0}, {changed_s, 0}};
  std::map<Node, std::filesystem::path> placed;
  walk(root, {}, [&](const std::string& name, Node node) {
    const std::filesystem::path path = folder / name;
    if (folders_.contains(node)) {
      if (mkdir(path.c_str(), 0700) != 0) throw std::runtime_error("cannot make " + path.string());
    } else if (const auto first = placed.find(node); first != placed.end()) {
      std::filesystem::create_hard_link(first->second, path);
    } else {
      write_whole(path, files_.at(node)->bytes, times);
      placed.emplace(node, path);
    }
  });
}

}  // namespace kiln::test
