// Reads a connection string a line. Logs in, inserts a document, finds it, and prints "found"; or prints the
// code of the server's refusal.
const { MongoClient } = require('mongodb');
const lines = require('fs').readFileSync(0, 'utf8').trim().split('\n');

async function login(uri) {
  const client = new MongoClient(uri, { serverSelectionTimeoutMS: 20000 });
  try {
    const cakes = client.db('shop').collection('cakes');
    const { insertedId } = await cakes.insertOne({ driver: 'node' });
    const found = await cakes.findOne({ _id: insertedId });
    return found.driver === 'node' ? 'found' : 'another document';
  } catch (error) {
    return `${error.code ?? error}`;
  } finally {
    await client.close();
  }
}

(async () => {
  for (const uri of lines) console.log(await login(uri));
})();
