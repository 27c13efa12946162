"""Reads the #include lines of src/, tools/ and examples/ and holds them against the table in docs/architecture.md: every
other edge between folders is an error, and so is any cycle between folders or between files."""
import pathlib
import re
import sys

ROW = re.compile(r"^\| `src/([\w.]+)/?` \|.*\| ([^|]*) \|$")
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)


def read_table(root):
    """{folder: the folders it may include}. "x and below": x and all that x may include."""
    allowed = {}
    for line in (root / "docs/architecture.md").read_text().splitlines():
        row = ROW.match(line)
        if not row:
            continue
        folder, cell = row.groups()
        if cell == "everything":
            allowed[folder] = set(allowed)
            continue
        below = cell.endswith(" and below")
        names = {name for name in cell.removesuffix(" and below").split(", ") if name != "-"}
        unknown = names - set(allowed)
        if unknown:
            sys.exit(f"docs/architecture.md: {folder} may include {', '.join(unknown)}, which no row above describes")
        allowed[folder] = names.union(*(allowed[name] for name in names)) if below else names
    if not allowed:
        sys.exit("docs/architecture.md: no table of folders found")
    return allowed


def sources(root, *folders):
    return sorted(path for folder in folders for path in (root / folder).rglob("*.[ch]"))


def includes_of(path):
    """[(is_quoted, name)]"""
    return [(mark == '"', name) for mark, name in INCLUDE.findall(path.read_text())]


def folder_of(path, src):
    """The row of the table a file belongs to: its folder, or the file's own name in src/ itself."""
    return path.relative_to(src).parts[0]


def check_library(root, allowed):
    """The errors found, and the includes among the library's files."""
    src = root / "src"
    errors, edges = [], {}
    for path in sources(root, "src"):
        here, folder = path.relative_to(root), folder_of(path, src)
        if folder not in allowed:
            errors.append(f"{here}: {folder} has no row in docs/architecture.md")
            continue
        for quoted, name in includes_of(path):
            target = src / name
            if not quoted:
                if target.exists():
                    errors.append(f'{here}: write #include "{name}": it is not a public header')
                continue
            if not target.exists():
                errors.append(f'{here}: "{name}" is not a file below src/')
                continue
            edges.setdefault(path, set()).add(target)
            other = folder_of(target, src)
            if other != folder and other not in allowed[folder]:
                errors.append(f"{here}: {folder} may not include {name} ({folder} may include: "
                              f"{', '.join(sorted(allowed[folder])) or 'nothing'})")
    return errors, edges


def check_users(root):
    """Tools and examples see the public headers and their own."""
    errors = []
    for path in sources(root, "tools", "examples"):
        for quoted, name in includes_of(path):
            if quoted and not (path.parent / name).exists():
                errors.append(f'{path.relative_to(root)}: "{name}" is not beside it; only public headers may be included')
    for path in sources(root, "include"):
        for quoted, name in includes_of(path):
            if quoted or (name.startswith("tandem/") and not (root / "include" / name).exists()):
                errors.append(f"{path.relative_to(root)}: public headers include <tandem/...> and the system's only")
    return errors


def find_cycle(edges):
    """A cycle as a list of nodes, or None."""
    done, path = set(), []

    def visit(node):
        if node in path:
            return path[path.index(node):] + [node]
        if node in done:
            return None
        path.append(node)
        for target in sorted(edges.get(node, ())):
            cycle = visit(target)
            if cycle:
                return cycle
        path.pop()
        done.add(node)
        return None

    for node in sorted(edges):
        cycle = visit(node)
        if cycle:
            return cycle
    return None


def check_cycles(root, edges):
    src, folders = root / "src", {}
    for path, targets in edges.items():
        for target in targets:
            if folder_of(path, src) != folder_of(target, src):
                folders.setdefault(folder_of(path, src), set()).add(folder_of(target, src))
    errors = []
    for kind, graph in (("files", {str(a.relative_to(src)): {str(b.relative_to(src)) for b in targets}
                                   for a, targets in edges.items()}), ("folders", folders)):
        cycle = find_cycle(graph)
        if cycle:
            errors.append(f"a cycle of {kind}: {' -> '.join(cycle)}")
    return errors


def main(root):
    errors, edges = check_library(root, read_table(root))
    errors += check_users(root) + check_cycles(root, edges)
    if not edges:
        errors.append("no includes found below src/: this check reads nothing")
    if errors:
        sys.exit("\n".join(errors))


main(pathlib.Path(sys.argv[1]))
