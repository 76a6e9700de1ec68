// Certificates for tests: authorities, and files of nodes that they certify.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "config/options.h"
#include "tools/admin/certificate_maker.h"

namespace ferry::daemon {

inline void WriteFile(const std::string& path, const std::string& text, mode_t mode = 0600) {
  std::ofstream(path) << text;
  chmod(path.c_str(), mode);
}

class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name) {
    auto made = tools::MakeAuthority(name, Valid());
    EXPECT_TRUE(made.ok()) << made.status().message();
    self_ = *made;
  }

  static tools::Validity Valid() { return {time(nullptr) - 60, time(nullptr) + 3600}; }
  static tools::Validity Expired() { return {time(nullptr) - 7200, time(nullptr) - 3600}; }
  static tools::Validity Later() { return {time(nullptr) + 3600, time(nullptr) + 7200}; }

  const std::string& certificate() const { return self_.certificate; }
  tools::CertificateAndKey Node(const std::vector<std::string>& names,
                                const tools::Validity& validity = Valid()) const {
    auto made = tools::MakeNodeCertificate(self_, names, validity);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return *made;
  }

  // Writes FOLDER/{ca,node}.pem and node.key and sets the options so.
  void Write(const std::string& folder, const tools::CertificateAndKey& node,
             config::Options* options) const {
    mkdir(folder.c_str(), 0700);
    options->tls_ca_file = folder + "/ca.pem";
    options->tls_cert_file = folder + "/node.pem";
    options->tls_key_file = folder + "/node.key";
    WriteFile(options->tls_ca_file, certificate());
    WriteFile(options->tls_cert_file, node.certificate);
    WriteFile(options->tls_key_file, node.key);
  }

 private:
  tools::CertificateAndKey self_;
};

}  // namespace ferry::daemon
