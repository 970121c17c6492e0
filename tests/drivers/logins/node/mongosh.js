// Run by mongosh: as login.js, with the connection strings in `URIS`.
for (const uri of URIS) {
  try {
    const cakes = new Mongo(uri).getDB('shop').cakes;
    const { insertedId } = cakes.insertOne({ driver: 'mongosh' });
    print(cakes.findOne({ _id: insertedId }).driver === 'mongosh' ? 'found' : 'another document');
  } catch (error) {
    print(`${error.code ?? error}`);
  }
}
