// A page of a history that follows its chain: asks whether a block came, and shows it then.
const EVERY = 2000; // milliseconds

let asking = false;

async function stands(ledger) {
  const answer = await fetch("/api/v1/ledgers").catch(() => null);
  if (!answer || !answer.ok) return null;
  const cards = (await answer.json()).ledgers;
  return cards.find((card) => card.id === ledger)?.digest ?? null;
}

export async function standing(swap) {
  if (asking) return;
  asking = true;
  while (document.getElementById("standing")) {
    await new Promise((go) => setTimeout(go, EVERY));
    const line = document.getElementById("standing");
    if (!line || document.hidden) continue;
    const now = await stands(line.dataset.ledger);
    if (now && now !== line.dataset.standing) await swap(location.pathname + location.search);
  }
  asking = false;
}
