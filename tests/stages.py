"""Every test, in stages below build/stages/. scripts/test installs what this needs and calls it.

- gcc: every test there is, with real Keras in an environment of its own.
- clang: a second compiler, without oneDNN. Left out is what neither changes: the command seen from outside, kills.
- address: the address and undefined-behaviour sanitizers.
- thread: the thread sanitizer, on what has threads. The vector loops are the baseline's alone: what threads share is the same
  for every instruction set, and compilers take long over each.
- debian: the tests with the other major version of oneDNN, and the other compilers and libraries of another Debian.
- fuzz: each file format, with Clang's libFuzzer.

What takes the network - Keras, the other Debian - is fetched beside the first stage's build.

Ends with one line, `N passed, N failed, N skipped`, and exits 1 when anything failed."""
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree

import other_debian

ROOT = pathlib.Path(__file__).resolve().parent.parent
STAGES = ROOT / "build" / "stages"
KERAS_ENV = ROOT / "build" / "keras-env"
KERAS_PACKAGES = ["keras==3.15.1", "jax", "numpy", "h5py", "tensorboard"]
PIP_SECONDS = 600
FUZZ_SECONDS = 20
LINES = ["-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_FLAGS=-g1"]  # for stack traces; all of -g takes compilers half as long again
SANITIZED = ["-DCMAKE_C_FLAGS_RELEASE=-O1 -DNDEBUG"]  # takes compilers half as long as -O3, with a sanitizer's checks in the code
JOBS = str(len(os.sched_getaffinity(0)))
ONCE = "keras|structure|slow"  # labels of tests that the first stage alone runs
OUTSIDE = "^(tool|bench)/|^train/(kill|larger)$"  # tests in which neither the compiler nor a library's version makes a difference
ONE_THREAD = "^(bench|cpu|sim|files|formats|fuzz|graph|headers|layers|model|ops|passes)/"  # tests that start no thread, or none that they share with others
SAME_THREADS = "^tool/(arguments|backup|callbacks|classes|cluster|cluster_config|files|find_lr|generate|help|plot|rates|stages|tables|train|weights|images|foreign|compiled)$|^profile/timing$"  # the library's tests have theirs
LONG = "^examples/(char_lstm|pollution)$|^sim/deaths$"  # by what shorter tests have shown to the sanitizers
SLOWEST = 6  # tests of a stage that are named with their times

BEGAN = time.monotonic()

passed, failed, skipped = [], [], []


def run(command, **options):
    """True when the command succeeds; what it prints is shown."""
    print("$ " + " ".join(map(str, command)), flush=True)
    return subprocess.run([str(part) for part in command], **options).returncode == 0


def run_quietly(command, **options):
    """True when the command succeeds; what it prints is shown only when it does not."""
    print("$ " + " ".join(map(str, command)), flush=True)
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", **options)
    if done.returncode != 0:
        print(done.stdout, flush=True)
    return done.returncode == 0


def succeeds(command, seconds, **options):
    """True when the command succeeds in time; silent."""
    try:
        return subprocess.run(command, timeout=seconds, capture_output=True, **options).returncode == 0
    except (subprocess.TimeoutExpired, OSError):
        return False


def title(text):
    print(f"\n== after {(time.monotonic() - BEGAN) / 60:.0f} minutes: {text}", flush=True)


def quick_tools(folder):
    """CMake's options for a faster linker, a build tool without recursion and a compiler cache, each where it is installed."""
    options = []
    if shutil.which("ld.lld"):  # GNU's takes three times as long over each of two hundred programs
        options += [f"-DCMAKE_{kind}_LINKER_FLAGS=-fuse-ld=lld" for kind in ("EXE", "SHARED")]
    if shutil.which("ninja") and not (folder / "Makefile").exists():
        options += ["-G", "Ninja"]
    if shutil.which("ccache"):
        options += ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"]
    return options


def build(name, options, compiler, targets=("all",)):
    folder = STAGES / name
    environment, began = dict(os.environ, CC=compiler), time.monotonic()
    configure = ["cmake", "-S", ROOT, "-B", folder, *quick_tools(folder), *LINES, *options]
    if run_quietly(configure, env=environment) and run_quietly(["cmake", "--build", folder, "--parallel", JOBS, "--target", *targets]):
        print(f"-- {name}: built in {time.monotonic() - began:.0f} s", flush=True)
        return folder
    failed.append(f"{name}: build")
    return None


def count(report, stage):
    """Sorts the tests of a JUnit report into passed, failed and skipped."""
    cases = xml.etree.ElementTree.parse(report).getroot().findall("testcase")
    times = sorted(((float(case.get("time") or 0), case.get("name")) for case in cases), reverse=True)
    print(f"-- {stage}: {sum(seconds for seconds, _ in times):.0f} s of tests; the longest:",
          ", ".join(f"{name} {seconds:.0f}" for seconds, name in times[:SLOWEST]), flush=True)
    for case in cases:
        name = f"{stage}: {case.get('name')}"
        status = case.get("status")
        if case.find("skipped") is not None or status == "disabled":
            skipped.append(name)
        elif status == "run" and case.find("failure") is None:
            passed.append(name)
        else:
            failed.append(name)
    return len(cases)


def run_tests(name, folder, options, environment=None, prefix=()):
    report = folder / "tests.xml"
    report.unlink(missing_ok=True)
    run([*prefix, "ctest", "--test-dir", folder, "--output-on-failure", "--no-tests=error", "-j", JOBS, "--output-junit",
         report, *options], env={**os.environ, "CTEST_OUTPUT_ON_FAILURE": "1", **(environment or {})})
    if not report.exists() or count(report, name) == 0:
        failed.append(f"{name}: no test was run")


def stage(name, says, compiler, options, test_options=("-LE", ONCE), environment=None, prefix=()):
    title(f"{name}: {says}")
    if not shutil.which(compiler):
        skipped.append(f"{name}: {compiler} is not installed")
        return
    folder = build(name, options, compiler)
    if folder:
        run_tests(name, folder, test_options, environment, prefix)


def keras_python():
    """The interpreter of an environment that holds real Keras, or None."""
    python = KERAS_ENV / "bin" / "python"
    works = [python, "-c", "import h5py, jax, keras, tensorboard; assert keras.__version__ == '3.15.1'"]
    environment = dict(os.environ, KERAS_BACKEND="jax")
    if succeeds(works, 120, env=environment):
        return python
    print(f"making {KERAS_ENV.relative_to(ROOT)}", flush=True)
    shutil.rmtree(KERAS_ENV, ignore_errors=True)
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--timeout", "15", "--retries", "1"]
    if not succeeds([sys.executable, "-m", "venv", KERAS_ENV], 120):
        print("python3 -m venv failed", flush=True)
    elif not run(["timeout", str(PIP_SECONDS), *pip, *KERAS_PACKAGES]):
        print("Keras cannot be installed from PyPI here: its tests are skipped", flush=True)
    elif succeeds(works, 300, env=environment):
        return python
    return None


def thread_sanitizer_prefix():
    """What to put before a program built with -fsanitize=thread so that it starts: some kernels place memory where the
    sanitizer wants its own, unless told not to. None when it does not start at all."""
    program = STAGES / "tsan-probe"
    STAGES.mkdir(parents=True, exist_ok=True)
    compile_probe = ["cc", "-fsanitize=thread", "-x", "c", "-o", str(program), "-"]
    if not succeeds(compile_probe, 60, input=b"int main(void) { return 0; }"):
        return None
    for prefix in ((), ("setarch", "-R")):
        if all(succeeds([*prefix, str(program)], 60) for _ in range(10)):
            return prefix
    return None


def thread_sanitizer_stage():
    prefix = thread_sanitizer_prefix()
    if prefix is None:
        skipped.append("thread: programs with -fsanitize=thread do not start on this machine")
        return
    stage("thread", "thread sanitizer", "cc", ["-DTANDEM_SANITIZE=thread", "-DTANDEM_VECTORS=OFF", *SANITIZED],
          ("-LE", ONCE, "-E", "|".join([ONE_THREAD, SAME_THREADS, LONG])), environment={"TSAN_OPTIONS": "halt_on_error=1"}, prefix=prefix)


def fuzz_one(program):
    """Starts a fuzz target on its seeds; the process."""
    name = program.name
    found = program.parent / f"found-{name}"
    found.mkdir(exist_ok=True)
    seeds = ROOT / "tests" / "fuzz" / "seeds" / name
    log = open(program.parent / f"{name}.log", "w")
    command = [program, f"-max_total_time={FUZZ_SECONDS}", "-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1",
               f"-artifact_prefix={program.parent}/{name}-", found, *([seeds] if seeds.is_dir() else [])]
    return subprocess.Popen(list(map(str, command)), stdout=log, stderr=subprocess.STDOUT)


def fuzz_stage():
    title(f"fuzz: {FUZZ_SECONDS} seconds for each file format")
    targets = sorted(path.stem for path in (ROOT / "tests" / "fuzz").glob("*.c"))
    probe = ["clang", "-x", "c", "-fsanitize=fuzzer,address,undefined", "-o", "/dev/null", "-"]
    if not succeeds(probe, 60, input=b"int LLVMFuzzerTestOneInput(const char *d, long n) { return d && n > 9; }"):
        skipped.extend(f"fuzz: {name} (Clang's libFuzzer is not installed)" for name in targets)
        return
    folder = build("fuzz", ["-DTANDEM_WERROR=ON", "-DTANDEM_FUZZ=ON", "-DTANDEM_SANITIZE=address,undefined",
                            "-DTANDEM_TOOLS=OFF", "-DTANDEM_EXAMPLES=OFF"], "clang", targets) if targets else None
    if not folder:
        return
    waiting, running = list(targets), {}
    while waiting or running:
        while waiting and len(running) < int(JOBS):
            name = waiting.pop(0)
            running[name] = fuzz_one(folder / "fuzz" / name)
        for name in [name for name, process in running.items() if process.poll() is not None]:
            process = running.pop(name)
            (passed if process.returncode == 0 else failed).append(f"fuzz: {name}")
            lines = (folder / "fuzz" / f"{name}.log").read_text(errors="replace").splitlines()
            print(f"-- {name}: exit {process.returncode}", *lines[-6 if process.returncode == 0 else -60:], sep="\n", flush=True)
        time.sleep(0.2)


def prepare_other_debian(root):
    """Makes the other Debian, with the tree in it and what it takes to build that; why there is none, or None."""
    why_not = other_debian.obstacle()
    if why_not:
        return why_not
    STAGES.mkdir(parents=True, exist_ok=True)
    with open(STAGES / "debian.log", "w") as out:
        if not other_debian.make(root, out):
            return "debootstrap failed: see build/stages/debian.log"
        other_debian.copy_sources(ROOT, root)
        if other_debian.run(root, "scripts/bootstrap build && apt-get -q -y install --no-install-recommends libcmocka-dev python3",
                            stdout=out, stderr=out) != 0:
            return "packages cannot be installed there: see build/stages/debian.log"
    return None


def other_debian_stage(root, prepared):
    title("debian: the tests with the other major version of oneDNN, in another release of Debian")
    why_not = prepared.result()
    if why_not:
        skipped.append(f"debian: {why_not}")
        return
    folder = other_debian.place_of_sources(root) / "build"
    build_script = f"cmake -B build {' '.join(LINES)} -DTANDEM_WERROR=ON >/dev/null && cmake --build build --parallel {JOBS} >build.log 2>&1"
    if other_debian.run(root, f"{{ {build_script}; }} || {{ tail -50 build.log; exit 1; }}") != 0:
        failed.append("debian: build")
        return
    other_debian.run(root, f"ctest --test-dir build --output-on-failure -j {JOBS} -LE '{ONCE}' -E '{OUTSIDE}' --output-junit tests.xml")
    if not (folder / "tests.xml").exists() or count(folder / "tests.xml", "debian") == 0:
        failed.append("debian: no test was run")


def first_stage(keras):
    title("gcc: every test, with real Keras as the judge")
    folder = build("gcc", ["-DTANDEM_WERROR=ON"], "cc")
    python = keras.result()
    if folder and run_quietly(["cmake", "-B", folder, f"-DTANDEM_KERAS_PYTHON={python or ''}"]):
        run_tests("gcc", folder, ())
    elif folder:
        failed.append("gcc: configuring it for Keras")


def report():
    title("every stage is done")
    for word, names in (("skipped", skipped), ("FAILED", failed)):
        for name in names:
            print(f"{word}: {name}")
    print(f"{len(passed)} passed, {len(failed)} failed, {len(skipped)} skipped", flush=True)
    sys.exit(1 if failed or not passed else 0)


def main():
    fetching = concurrent.futures.ThreadPoolExecutor(max_workers=1)
    keras, debian = fetching.submit(keras_python), STAGES / "debian"
    debian_prepared = fetching.submit(prepare_other_debian, debian)
    first_stage(keras)
    stage("clang", "no warnings, and the tests, with Clang, without oneDNN", "clang", ["-DTANDEM_WERROR=ON", "-DTANDEM_ONEDNN=OFF"],
          ("-LE", ONCE, "-E", OUTSIDE))
    stage("address", "address and undefined-behaviour sanitizers", "cc", ["-DTANDEM_SANITIZE=address,undefined", *SANITIZED],
          ("-LE", ONCE, "-E", LONG), environment={"UBSAN_OPTIONS": "print_stacktrace=1"})
    thread_sanitizer_stage()
    other_debian_stage(debian, debian_prepared)
    fuzz_stage()
    report()


if __name__ == "__main__":
    main()
