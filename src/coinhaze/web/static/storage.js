// What this browser remembers of the page: never sent anywhere.
export function recall(name) {
  try {
    return localStorage.getItem(`coinhaze-${name}`);
  } catch {
    return null;
  }
}

export function store(name, value) {
  try {
    localStorage.setItem(`coinhaze-${name}`, value);
  } catch {
    // Storage may be off: nothing is remembered.
  }
}

// Tell those who do not see the page what changed.
export function say(words) {
  document.getElementById("said").textContent = words;
}
