// A user's own folders in a place where anybody may make folders of any name, such as /tmp.
//
// Nobody else can make a folder that belongs to the user. So one whose name nobody can guess
// (mkdtemp) is found again by its owner, and others gain nothing by names that look alike.
//
// Any thread; blocks on the file system only.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace ferry {

// Whether `path` is a folder, not a link to one, that belongs to the user and into which nobody
// else may write.
bool IsFolderOf(const std::string& path, uid_t uid);

// The paths of such folders in `base` whose names begin with `prefix`, sorted.
std::vector<std::string> FoldersOf(const std::string& base, const std::string& prefix, uid_t uid);

// Whether nobody but the user and root can put another thing in the place of what the user makes in
// `base`: it is the user's or root's, and where others may write it is sticky, as /tmp is.
bool IsSafeBase(const std::string& base, uid_t uid);

}  // namespace ferry
