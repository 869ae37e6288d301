// FolderImage: a folder as a value: files and folders, and the names that lead to them.
//
// Files and folders have numbers, so that a name can be lost, doubled or late while what it names goes on changing, as
// on a disk. Thread-safety: values. Ownership: values; bytes are shared between copies.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::test {

using Node = std::uint64_t;

class FolderImage {
 public:
  static constexpr Node root = 0;

  // What lies on disk, its inodes as numbers. root stands for the folder itself.
  static FolderImage of(const std::filesystem::path& folder);

  void make_file(Node file);
  void make_folder(Node folder);
  // A later name replaces an earlier one of the same text.
  void name(Node in, const std::string& name, Node what);
  void forget(Node in, const std::string& name);
  void write(Node file, std::uint64_t at, std::string_view bytes);
  void resize(Node file, std::uint64_t size);

  // By a path with '/' between its parts.
  std::optional<Node> find(std::string_view path) const;
  // The bytes of the file of that path; nullopt: there is none.
  std::optional<std::string_view> bytes_at(std::string_view path) const;
  std::string_view bytes_of(Node file) const;
  // Of all files that have a name, in order.
  std::vector<std::string> paths() const;

  // The same for images that no program could tell apart: of what no name leads to nothing is in it.
  std::string fingerprint() const;
  // Into an empty folder. Everything was last changed at the time, in seconds since 1970.
  void put(const std::filesystem::path& folder, std::int64_t changed_s) const;

 private:
  struct Content {
    std::string bytes, sum;
  };
  using Names = std::map<std::string, Node, std::less<>>;

  void set(Node file, std::string bytes);
  template <class OnPath>
  void walk(Node folder, const std::string& path, const OnPath& on_path) const;

  std::map<Node, Names> folders_{{root, {}}};
  std::map<Node, std::shared_ptr<const Content>> files_;
};

}  // namespace kiln::test
