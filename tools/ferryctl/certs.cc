#include "tools/ferryctl/certs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "common/unique_fd.h"
#include "config/environment.h"
#include "tools/admin/certificate_maker.h"

namespace ferry::tools {
namespace {

namespace fs = std::filesystem;

constexpr char kAuthority[] = "ca";
constexpr time_t kHour = 3600;
constexpr time_t kDay = 24 * kHour;
constexpr time_t kAuthorityDays = 3650;

struct File {
  fs::path path;
  std::string text;
};

// Valid from an hour ago, for clocks that are slow.
Validity ValidFor(time_t days) {
  const time_t now = time(nullptr);
  return {now - kHour, now + days * kDay};
}

StatusOr<std::string> ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file || text.empty()) {
    return Status(ErrorCode::kInvalidArgument, "the authority in " + path.parent_path().string() +
                                                   " has no readable " + path.filename().string() +
                                                   ": it cannot vouch for nodes");
  }
  return text;
}

Status WriteNew(const File& file) {
  const UniqueFd fd(open(file.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid() || write(fd.get(), file.text.data(), file.text.size()) !=
                         static_cast<ssize_t>(file.text.size())) {
    return StatusFromErrno(errno, "cannot write " + file.path.string());
  }
  return {};
}

Status CheckAbsent(const std::vector<File>& files) {
  for (const File& file : files) {
    std::error_code ignored;
    if (fs::exists(fs::symlink_status(file.path, ignored))) {
      return {ErrorCode::kAlreadyExists, file.path.string() +
                                             " is there already and is not "
                                             "overwritten: remove it, or choose another directory"};
    }
  }
  return {};
}

// The one in the directory, or a new one, which then stands in `files`.
StatusOr<CertificateAndKey> Authority(const fs::path& directory, std::vector<File>* files) {
  const fs::path certificate = directory / (std::string(kAuthority) + ".pem");
  const fs::path key = directory / (std::string(kAuthority) + ".key");
  if (fs::exists(certificate) || fs::exists(key)) {
    StatusOr<std::string> certificate_text = ReadFile(certificate);
    FERRY_RETURN_IF_ERROR(certificate_text.status());
    StatusOr<std::string> key_text = ReadFile(key);
    FERRY_RETURN_IF_ERROR(key_text.status());
    return CertificateAndKey{std::move(*certificate_text), std::move(*key_text)};
  }
  StatusOr<CertificateAndKey> made =
      MakeAuthority("Ferry test authority", ValidFor(kAuthorityDays));
  FERRY_RETURN_IF_ERROR(made.status());
  files->push_back({certificate, made->certificate});
  files->push_back({key, made->key});
  return made;
}

StatusOr<NodeFiles> ParseNode(const std::string& text, const fs::path& directory) {
  NodeFiles node;
  for (size_t start = 0; start <= text.size();) {
    const size_t comma = std::min(text.find(',', start), text.size());
    node.valid_for.push_back(text.substr(start, comma - start));
    start = comma + 1;
  }
  node.name = node.valid_for.front();
  if (node.name == kAuthority || node.name.find('/') != node.name.npos) {
    return Status(ErrorCode::kInvalidArgument, "a node cannot be called \"" + node.name +
                                                   "\": its files are called after it, and " +
                                                   kAuthority + ".pem is the authority's");
  }
  node.certificate = directory / (node.name + ".pem");
  node.key = directory / (node.name + ".key");
  return node;
}

Status MakeDirectory(const fs::path& directory) {
  return mkdir(directory.c_str(), 0700) == 0 || errno == EEXIST
             ? Status()
             : StatusFromErrno(errno, "cannot make the directory " + directory.string());
}

}  // namespace

StatusOr<CertsResult> MakeCerts(const CertsPlan& plan) {
  const fs::path directory = fs::absolute(plan.directory).lexically_normal();
  std::vector<File> files;
  const StatusOr<CertificateAndKey> authority = Authority(directory, &files);
  FERRY_RETURN_IF_ERROR(authority.status());
  CertsResult result;
  result.new_authority = !files.empty();
  result.authority = directory / (std::string(kAuthority) + ".pem");
  std::vector<std::string> nodes = plan.nodes;
  if (nodes.empty()) {
    nodes.push_back(config::HostName() + ",localhost,127.0.0.1,::1");
  }
  for (const std::string& text : nodes) {
    StatusOr<NodeFiles> node = ParseNode(text, directory);
    FERRY_RETURN_IF_ERROR(node.status());
    const auto made =
        MakeNodeCertificate(*authority, node->valid_for, ValidFor(static_cast<time_t>(plan.days)));
    FERRY_RETURN_IF_ERROR(made.status());
    for (const NodeFiles& other : result.nodes) {
      if (other.name == node->name) {
        return Status(ErrorCode::kInvalidArgument, "node " + node->name + " is given twice");
      }
    }
    files.push_back({node->certificate, made->certificate});
    files.push_back({node->key, made->key});
    result.nodes.push_back(std::move(*node));
  }
  FERRY_RETURN_IF_ERROR(CheckAbsent(files));
  FERRY_RETURN_IF_ERROR(MakeDirectory(directory));
  for (const File& file : files) {
    FERRY_RETURN_IF_ERROR(WriteNew(file));
  }
  return result;
}

std::string CertsText(const CertsResult& result) {
  std::string text = (result.new_authority ? "made an authority, " : "used the authority ") +
                     result.authority +
                     "; its key, ca.key, can vouch for anybody: keep it away from the nodes\n";
  for (const NodeFiles& node : result.nodes) {
    text += "\nnode " + node.name + ", valid for";
    for (const std::string& name : node.valid_for) {
      text += " " + name;
    }
    text += "; in its ferryd.toml:\ntls_ca_file = \"" + result.authority +
            "\"\ntls_cert_file = \"" + node.certificate + "\"\ntls_key_file = \"" + node.key +
            "\"\n";
  }
  return text;
}

}  // namespace ferry::tools
