#include "core/cache/powercut/operations.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>
#include <utility>

namespace kiln::test {
namespace {

constexpr std::uint64_t sector = 512;

constexpr std::array of_moved{Fate::kept, Fate::lost, Fate::both_names, Fate::no_name};
constexpr std::array of_written{Fate::kept,       Fate::lost,      Fate::size_only,
                                Fate::head_short, Fate::head_only, Fate::tail_only};
constexpr std::array of_others{Fate::kept, Fate::lost};
constexpr std::array of_flushed{Fate::kept};

// How many of the bytes lie before the middle, to the end of a sector; none where all are in one.
std::uint64_t head_of(const Operation& operation) {
  const std::uint64_t middle = operation.at + operation.bytes.size() / 2;
  const std::uint64_t end = (middle + sector - 1) / sector * sector;
  return end >= operation.at + operation.bytes.size() ? 0 : end - operation.at;
}

void apply_write(FolderImage& image, const Operation& operation, Fate fate) {
  const std::string_view bytes = operation.bytes;
  const std::uint64_t head = head_of(operation), end = operation.at + bytes.size();
  if (fate != Fate::head_short && image.bytes_of(operation.node).size() < end) image.resize(operation.node, end);
  switch (fate) {
    case Fate::kept:
      return image.write(operation.node, operation.at, bytes);
    case Fate::head_short:
    case Fate::head_only:
      return image.write(operation.node, operation.at, bytes.substr(0, head));
    case Fate::tail_only:
      return image.write(operation.node, operation.at + head, bytes.substr(head));
    default:
      return;
  }
}

void apply_move(FolderImage& image, const Operation& operation, Fate fate) {
  if (fate != Fate::both_names) image.forget(operation.folder, operation.name);
  if (fate != Fate::no_name) image.name(operation.to_folder, operation.to_name, operation.node);
}

// A path is a folder's and a name in it.
std::pair<Node, std::string> place_of(const FolderImage& image, const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const auto folder =
      image.find(slash == std::string::npos ? std::string_view() : std::string_view(path).substr(0, slash));
  if (!folder) throw std::runtime_error("the log of writes names " + path + ", which lies in no known folder");
  return {*folder, slash == std::string::npos ? path : path.substr(slash + 1)};
}

Node known(const FolderImage& image, const std::string& path) {
  const auto node = image.find(path);
  if (!node) throw std::runtime_error("the log of writes names " + path + ", which nothing made");
  return *node;
}

bool is_data(Change change) noexcept { return change == Change::written || change == Change::cut; }

void note_what_is_safe(std::vector<Operation>& operations) {
  for (std::size_t flush = 0; flush < operations.size(); ++flush) {
    if (operations[flush].change != Change::flushed) continue;
    for (Operation& earlier : std::span(operations).first(flush)) {
      const Node flushed = operations[flush].node;
      const bool covered =
          is_data(earlier.change) ? earlier.node == flushed : earlier.folder == flushed || earlier.to_folder == flushed;
      if (covered && earlier.change != Change::flushed && earlier.safe == 0) earlier.safe = flush;
    }
  }
}

// A file is known by its last name that is not a temporary one; a folder by its only one.
void note_subjects(std::vector<Operation>& operations, std::map<Node, std::string> names) {
  for (const Operation& operation : operations) {
    const std::string& name = operation.to_name.empty() ? operation.name : operation.to_name;
    if (!name.empty() && (!name.ends_with(".tmp") || !names.contains(operation.node))) names[operation.node] = name;
  }
  for (Operation& operation : operations) operation.subject = names[operation.node];
}

}  // namespace

std::span<const Fate> fates_of(Change change) noexcept {
  switch (change) {
    case Change::moved:
      return of_moved;
    case Change::written:
      return of_written;
    case Change::flushed:
      return of_flushed;
    default:
      return of_others;
  }
}

std::string_view to_string(Fate fate) noexcept {
  constexpr std::array words{"kept",      "lost",        "both names", "no name",
                             "size only", "head, short", "head only",  "tail only"};
  return words[static_cast<std::size_t>(fate)];
}

std::string text_of(const Operation& operation) {
  constexpr std::array words{"invalid", "made file", "made folder", "wrote",  "cut",
                             "moved",   "linked",    "removed",     "flushed"};
  std::string text = words[static_cast<std::size_t>(operation.change)];
  text += " " + (operation.name.empty() ? operation.subject : operation.name);
  if (!operation.to_name.empty()) text += " to " + operation.to_name;
  if (operation.change == Change::written) {
    text += ", " + std::to_string(operation.bytes.size()) + " bytes at " + std::to_string(operation.at);
  }
  return text;
}

void apply(FolderImage& image, const Operation& operation, Fate fate) {
  // What was made exists without its name: it only cannot be found.
  if (operation.change == Change::file_made) image.make_file(operation.node);
  if (operation.change == Change::folder_made) image.make_folder(operation.node);
  if (fate == Fate::lost) return;
  switch (operation.change) {
    case Change::file_made:
    case Change::folder_made:
      return image.name(operation.folder, operation.name, operation.node);
    case Change::linked:
      return image.name(operation.to_folder, operation.to_name, operation.node);
    case Change::written:
      return apply_write(image, operation, fate);
    case Change::cut:
      return image.resize(operation.node, operation.at);
    case Change::moved:
      return apply_move(image, operation, fate);
    case Change::removed:
      return image.forget(operation.folder, operation.name);
    case Change::flushed:
    case Change::invalid:
      return;
  }
}

std::vector<Operation> operations_of(const FolderImage& before, std::span<const WriteCall> calls) {
  std::vector<Operation> operations;
  FolderImage image = before;
  std::map<std::uint64_t, Node> nodes;  // by inode, whose numbers are used again
  std::map<Node, std::string> names;
  for (const std::string& path : before.paths()) names[*before.find(path)] = path.substr(path.rfind('/') + 1);
  Node next = Node{1} << 63;
  const auto node_of = [&](std::uint64_t inode) {
    const auto made = nodes.find(inode);
    return made == nodes.end() ? Node{inode} : made->second;
  };
  for (const WriteCall& call : calls) {
    Operation operation;
    operation.change = call.change;
    operation.at = call.offset;
    operation.bytes = call.bytes;
    switch (call.change) {
      case Change::file_made:
      case Change::folder_made:
        operation.node = nodes[call.inode] = next++;
        std::tie(operation.folder, operation.name) = place_of(image, call.path);
        break;
      case Change::moved:
      case Change::linked:
        operation.node = known(image, call.path);
        std::tie(operation.folder, operation.name) = place_of(image, call.path);
        std::tie(operation.to_folder, operation.to_name) = place_of(image, call.to);
        break;
      case Change::removed:
        operation.node = known(image, call.path);
        std::tie(operation.folder, operation.name) = place_of(image, call.path);
        break;
      default:
        operation.node = node_of(call.inode);
    }
    apply(image, operation, Fate::kept);
    operations.push_back(std::move(operation));
  }
  note_what_is_safe(operations);
  note_subjects(operations, std::move(names));
  return operations;
}

}  // namespace kiln::test
