// Jobs: ask how far they are, cancel them, and go on when the page they were for is there.
const EVERY = 700; // milliseconds

async function look(card) {
  const answer = await fetch(`/api/v1/jobs/${card.dataset.job}`).catch(() => null);
  return answer && answer.ok ? answer.json() : null;
}

function words(job) {
  if (job.state !== "running") return job.state;
  const span = (s) => (s >= 60 ? `${Math.floor(s / 60)} min ${Math.round(s % 60)} s` : `${Math.round(s)} s`);
  const done = job.share === null ? "running" : `${Math.round(job.share * 100)} % done`;
  if (job.seconds_left === null) return `${done} · ${span(job.seconds)} so far`;
  return `${done} · about ${span(job.seconds_left)} left`;
}

async function follow(card) {
  const again = card.closest("[data-then-reload]") !== null;
  while (card.isConnected) {
    const job = await look(card);
    if (!job) return;
    card.dataset.state = job.state;
    card.querySelector(".job-state").textContent = words(job);
    const bar = card.querySelector("progress");
    if (bar && job.share !== null) bar.value = job.share;
    if (job.state !== "queued" && job.state !== "running") {
      if (again && job.state === "done") location.reload();
      else location.assign("/jobs");
      return;
    }
    await new Promise((go) => setTimeout(go, EVERY));
  }
}

export function jobs() {
  for (const card of document.querySelectorAll("[data-job]")) {
    if (card.dataset.state === "running" || card.dataset.state === "queued") follow(card);
  }
}
